"""The size of the world, and the ways to settle a boot wrongly."""

from __future__ import annotations

from dataclasses import dataclass

CUTS = "cuts"

VARIANTS: dict[str, str] = {
    CUTS: "as native/events_boot.hpp has it",
    "lines-only": "who opens asks only whether a line is held, and holds no settling lock",
    "shared-early": "the settling lock is shared before the cut is made",
    "noted-first": "the witnesses are stored before the cut",
    "noted-before-counted": "the witnesses are stored before the cut is counted",
    "never-counted": "a cut is not counted",
    "lowered-first": "a reader's place is lowered before it is noted where it was",
}


@dataclass(frozen=True)
class Configuration:
    """Who opens the log after a crash of the machine, each of whom puts one item, and how many of them are killed."""

    openers: int = 2
    kills: int = 0
    variant: str = CUTS

    def __post_init__(self) -> None:
        if not 1 <= self.openers <= 4:
            raise ValueError(f"1 to 4 openers: openers={self.openers}")
        if self.kills < 0:
            raise ValueError(f"kills must not be negative: kills={self.kills}")
        if self.variant not in VARIANTS:
            raise ValueError(f"no such variant: {self.variant!r}; try {', '.join(VARIANTS)}")

    @property
    def is_sound(self) -> bool:
        return self.variant == CUTS

    def __str__(self) -> str:
        return f"{self.variant} O={self.openers} K={self.kills}"
