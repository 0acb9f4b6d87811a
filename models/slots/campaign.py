"""Which configurations of the slots are searched, and what each must show."""

from __future__ import annotations

from models.core.campaign import Campaign, Case
from models.core.search import STUCK
from models.slots.model import SlotsModel
from models.slots.rules import Configuration
from models.slots.world import CORRUPT, DOUBLED, LOST, MISCOUNTED, SHARED

# The smallest world that shows each mistake.
BROKEN: tuple[Case[Configuration], ...] = (
    Case(Configuration(variant="head-before-word", kills=1), STUCK),
    Case(Configuration(variant="front-not-checked-again", producers=2, kills=1), CORRUPT),
    Case(Configuration(variant="claims-not-helped", consumers=2, kills=1), STUCK),
    Case(Configuration(variant="no-generations", producers=2, kills=1), CORRUPT),
    Case(Configuration(variant="arriving-not-searched", producers=2, kills=1), CORRUPT),
    Case(Configuration(variant="leaving-not-searched", consumers=2, kills=1), CORRUPT),
    Case(Configuration(variant="heads-not-passed", kills=1), CORRUPT),
    Case(Configuration(variant="passed-cells-count", kills=1), STUCK),
    Case(Configuration(variant="taken-items-dropped", consumers=2, kills=1), LOST),
    Case(Configuration(variant="tail-not-helped", producers=2, kills=1), STUCK),
    Case(Configuration(variant="recovery-without-compare", consumers=2, kills=1), SHARED),
    Case(Configuration(variant="claims-not-cut", put_once=True, producers=2, kills=1), LOST),
    Case(Configuration(variant="held-claims-not-cut", put_once=True, producers=2, kills=1), LOST),
    Case(Configuration(variant="cut-after-swap", put_once=True, producers=2, kills=1), LOST),
    Case(Configuration(variant="cut-without-check", put_once=True, producers=2, kills=1), DOUBLED),
    Case(Configuration(variant="no-intent", put_once=True, producers=2, kills=1), DOUBLED),
    Case(Configuration(variant="undecided-is-in", put_once=True, producers=2, kills=1), LOST),
    Case(Configuration(variant="counted-early", put_once=True, producers=2, kills=1), LOST),
    Case(Configuration(variant="arrival-noted-late"), MISCOUNTED),
)

# Each side alone and contended, several cycles, recoverers that are killed too, and eviction.
SOUND_SHORT: tuple[Case[Configuration], ...] = (
    Case(Configuration(items=3)),
    Case(Configuration(items=3, kills=1)),
    Case(Configuration(producers=2, kills=2)),
    Case(Configuration(consumers=2, kills=2)),
    Case(Configuration(items=2, consumers=2, kills=1)),
    Case(Configuration(slots=2, producers=2, kills=1)),
    Case(Configuration(slots=2, items=2, consumers=2)),
    Case(Configuration(slots=3, items=3, kills=1)),
    Case(Configuration(items=2, overwrites=True, kills=1)),
    Case(Configuration(producers=2, overwrites=True, kills=2)),
    Case(Configuration(slots=2, items=3, overwrites=True, kills=1)),
    Case(Configuration(put_once=True, producers=2, kills=2)),
    Case(Configuration(put_once=True, producers=2, items=2, kills=1)),
)
SOUND_LONG: tuple[Case[Configuration], ...] = (
    Case(Configuration(items=2, consumers=2, kills=2)),
    Case(Configuration(slots=2, producers=2, kills=2)),
    Case(Configuration(slots=2, items=2, consumers=2, kills=1)),
    Case(Configuration(slots=2, items=3, consumers=2)),
    Case(Configuration(producers=2, items=2, kills=2)),
    Case(Configuration(producers=2, consumers=2, kills=1)),
    Case(Configuration(slots=2, producers=2, items=2, kills=1)),
    Case(Configuration(slots=2, producers=2, overwrites=True, kills=2)),
    Case(Configuration(producers=2, items=2, overwrites=True, kills=1)),
    Case(Configuration(put_once=True, producers=3, kills=2)),
    Case(Configuration(put_once=True, slots=2, producers=2, items=2, kills=1)),
    Case(Configuration(put_once=True, producers=2, consumers=2, kills=1)),
)

CAMPAIGN = Campaign(SlotsModel, Configuration, SOUND_SHORT, BROKEN, SOUND_LONG)
