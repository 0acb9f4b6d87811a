"""How big a world is, and which rule of the algorithm is broken in it."""

from __future__ import annotations

from dataclasses import dataclass

from models.core.configuration import Configuration as BaseConfiguration
from models.core.configuration import option

LEVELS = "levels"

VARIANTS = {
    LEVELS: "the algorithm",
    "naive": "a full ring is left without being closed, and an empty one too",
    "closed-apart": "the closing is a flag of its own, not a bit of the word that a claim moves",
    "range-read-again": "the level range is swapped from a value read after the judgement, not from the one judged",
    "reset-under-readers": "a level is zeroed without a check that its slots were released",
    "reset-in-range": "a level is opened without a check that it was zeroed",
    "range-not-checked-again": "a position is believed without a check that the level range is still the one judged",
    "lowered": "an opening stores its words, whatever they are, instead of raising them",
    "shrink-unjudged": "a ring is closed for shrinking from its push position, whether empty or not",
    "unused-seems-used": "a level that was closed with nothing in it seems used in the midst of its next opening",
    "followed-by-maker-only": "only the participant that closed a ring follows the closing",
}


@dataclass(frozen=True)
class Configuration(BaseConfiguration):
    """Producers by how many items each puts, consumers, slots of each level."""

    VARIANTS = VARIANTS

    producers: tuple[int, ...] = option((3,), "how many items each of them puts")
    consumers: int = option(1, "participants that get")
    slots: tuple[int, ...] = option((2, 2), "slots of each level", least=2)
    shrinks: int = option(0, "how often an empty ring may be closed")
