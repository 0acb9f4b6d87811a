"""How big a world is, and which rule of the algorithm is broken in it."""

from __future__ import annotations

from dataclasses import dataclass

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
class Configuration:
    """Producers by how many items each puts, consumers, slots of each level."""

    variant: str = LEVELS
    producers: tuple[int, ...] = (3,)
    consumers: int = 1
    slots: tuple[int, ...] = (2, 2)
    shrinks: int = 0
    kills: int = 0

    def __post_init__(self) -> None:
        if self.variant not in VARIANTS:
            raise ValueError(f"variant must be one of {', '.join(VARIANTS)}: variant={self.variant!r}")
        if min(self.slots) < 2:
            raise ValueError(f"a ring has two slots at least: slots={self.slots}")

    @property
    def is_sound(self) -> bool:
        return self.variant == LEVELS

    def __str__(self) -> str:
        return (
            f"{self.variant}: producers={self.producers} consumers={self.consumers} slots={self.slots} "
            f"shrinks={self.shrinks} kills={self.kills}"
        )
