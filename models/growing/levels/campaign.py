"""Which configurations of the levels are searched, and what each must show."""

from __future__ import annotations

from models.core.campaign import Campaign, Case
from models.core.search import STUCK
from models.growing.levels.model import LevelsModel
from models.growing.levels.rules import Configuration
from models.growing.levels.world import LOST, PASSED, TORN

# The smallest world that was found to show each mistake.
BROKEN: tuple[Case[Configuration], ...] = (
    Case(Configuration(variant="naive", producers=(2, 1)), LOST),
    Case(Configuration(variant="closed-apart", producers=(3, 1)), LOST),
    Case(Configuration(variant="range-read-again", producers=(2, 1)), PASSED),
    Case(Configuration(variant="reset-under-readers", producers=(4,), consumers=2), TORN),
    Case(Configuration(variant="reset-in-range", producers=(6,), shrinks=1), STUCK),
    Case(Configuration(variant="range-not-checked-again", producers=(3, 1), shrinks=1), LOST),
    Case(Configuration(variant="lowered", producers=(4,), shrinks=1), LOST),
    Case(Configuration(variant="shrink-unjudged", producers=(4,), shrinks=1), LOST),
    Case(Configuration(variant="unused-seems-used", producers=(5,), shrinks=1), STUCK),
    Case(Configuration(variant="followed-by-maker-only", producers=(3, 1), kills=1), STUCK),
)

# Up, down and up again, with kills of participants that close, open, move and reset.
SOUND_SHORT: tuple[Case[Configuration], ...] = (
    Case(Configuration(producers=(3,), kills=2)),
    Case(Configuration(producers=(2,), consumers=2, kills=1)),
    Case(Configuration(producers=(4,), shrinks=2, kills=1)),
    Case(Configuration(producers=(2, 1), kills=1)),
)
SOUND_LONG: tuple[Case[Configuration], ...] = (
    Case(Configuration(producers=(5,), slots=(2, 2, 2), shrinks=1)),
    Case(Configuration(producers=(5,), shrinks=1, kills=1)),
    Case(Configuration(producers=(2, 1), kills=2)),
    Case(Configuration(producers=(3,), consumers=2, kills=1)),
)

CAMPAIGN = Campaign(LevelsModel, Configuration, SOUND_SHORT, BROKEN, SOUND_LONG)
