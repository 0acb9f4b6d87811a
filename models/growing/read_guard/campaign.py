"""Which configurations of the read guard are searched, and what each must show."""

from __future__ import annotations

from models.core.campaign import Campaign, Case
from models.core.search import STUCK
from models.growing.read_guard.model import LATE, ReadGuardModel
from models.growing.read_guard.rules import Configuration

BROKEN: tuple[Case[Configuration], ...] = (
    Case(Configuration(variant="unguarded", readers=(1,), reclaimers=(1,), moves=1), LATE),
    Case(Configuration(variant="range-read-first", readers=(1,), reclaimers=(1,), moves=1), LATE),
    Case(Configuration(variant="no-fence", readers=(1,), reclaimers=(1,), moves=1), LATE),
    Case(Configuration(variant="guard-dropped-early", readers=(1,), reclaimers=(1,), moves=1), LATE),
    Case(Configuration(variant="guards-read-first", readers=(1,), reclaimers=(1,), moves=1), LATE),
    Case(Configuration(variant="dead-guards-count", readers=(1,), reclaimers=(1,), moves=1, kills=1), STUCK),
    Case(
        Configuration(variant="guarded-after-the-lock", readers=(), redeliverers=(1,), reclaimers=(1,), moves=1), LATE
    ),
)

SOUND_SHORT: tuple[Case[Configuration], ...] = (
    Case(Configuration(readers=(2,), reclaimers=(2,), moves=4, kills=1)),
    Case(Configuration(readers=(1, 1), reclaimers=(1,), moves=2, kills=1)),
    Case(Configuration(readers=(1,), redeliverers=(1,), reclaimers=(1,), moves=2, kills=1)),
)
SOUND_LONG: tuple[Case[Configuration], ...] = (
    Case(Configuration(readers=(1, 1), reclaimers=(2,), moves=3, kills=1)),
    Case(Configuration(readers=(1,), redeliverers=(1,), reclaimers=(1, 1), moves=2, kills=1)),
)

CAMPAIGN = Campaign(ReadGuardModel, Configuration, SOUND_SHORT, BROKEN, SOUND_LONG)
