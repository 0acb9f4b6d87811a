"""Which configurations of the looks are searched, and what each must show."""

from __future__ import annotations

from models.core.campaign import Campaign, Case
from models.core.search import STUCK
from models.growing.read_guard.model import LATE, LooksModel
from models.growing.read_guard.rules import Configuration

BROKEN: tuple[Case[Configuration], ...] = (
    Case(Configuration(variant="unannounced", lookers=(1,), tidiers=(1,), moves=1), LATE),
    Case(Configuration(variant="seen-first", lookers=(1,), tidiers=(1,), moves=1), LATE),
    Case(Configuration(variant="no-fence", lookers=(1,), tidiers=(1,), moves=1), LATE),
    Case(Configuration(variant="over-early", lookers=(1,), tidiers=(1,), moves=1), LATE),
    Case(Configuration(variant="asked-first", lookers=(1,), tidiers=(1,), moves=1), LATE),
    Case(Configuration(variant="the-dead-too", lookers=(1,), tidiers=(1,), moves=1, kills=1), STUCK),
    Case(Configuration(variant="after-the-lock", lookers=(), adopters=(1,), tidiers=(1,), moves=1), LATE),
)

SOUND_SHORT: tuple[Case[Configuration], ...] = (
    Case(Configuration(lookers=(2,), tidiers=(2,), moves=4, kills=1)),
    Case(Configuration(lookers=(1, 1), tidiers=(1,), moves=2, kills=1)),
    Case(Configuration(lookers=(1,), adopters=(1,), tidiers=(1,), moves=2, kills=1)),
)
SOUND_LONG: tuple[Case[Configuration], ...] = (
    Case(Configuration(lookers=(1, 1), tidiers=(2,), moves=3, kills=1)),
    Case(Configuration(lookers=(1,), adopters=(1,), tidiers=(1, 1), moves=2, kills=1)),
)

CAMPAIGN = Campaign(LooksModel, Configuration, SOUND_SHORT, BROKEN, SOUND_LONG)
