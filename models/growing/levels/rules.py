"""How big a world is, and which rule of the algorithm is broken in it."""

from __future__ import annotations

from dataclasses import dataclass

from models.core.configuration import Configuration as BaseConfiguration
from models.core.configuration import option

LEVELS = "levels"

VARIANTS = {
    LEVELS: "the algorithm",
    "naive": "the seed's pseudo-code: a full ring is left without being closed, an empty one without being closed",
    "closed-apart": "the closing is a flag of its own, not a bit of the word that a claim moves",
    "stage-read-again": "the stage is swapped from a value read after the judgement, not from the one judged",
    "reset-under-readers": "a level is zeroed without a look whether its slots were released",
    "reset-in-stage": "a level is opened without a look whether it was zeroed",
    "no-second-look": "a position is believed without looking whether the stage is still the one judged",
    "lowered": "an opening stores its words, whatever they are, instead of raising them",
    "shrink-unjudged": "a ring is closed for shrinking from its push position, whether empty or not",
    "unused-looks-used": "a level that was closed with nothing in it looks used in the midst of its next opening",
    "nobody-follows": "a closing is followed by its maker alone",
}


@dataclass(frozen=True)
class Configuration(BaseConfiguration):
    """Producers by how many items each puts, consumers, slots of each level."""

    VARIANTS = VARIANTS

    producers: tuple[int, ...] = option((3,), "how many items each of them puts")
    consumers: int = option(1, "participants that get")
    slots: tuple[int, ...] = option((2, 2), "slots of each level", least=2)
    shrinks: int = option(0, "how often an empty ring may be closed")
