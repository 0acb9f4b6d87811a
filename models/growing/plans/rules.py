"""How big a world is, and which rule of the algorithm is broken in it."""

from __future__ import annotations

from dataclasses import dataclass

PLANS = "plans"

VARIANTS = {
    PLANS: "the algorithm",
    "unconfirmed": "a level is withdrawn without a look whether the stage is still the one judged",
    "next-too": "the level after the written one is withdrawn as well",
    "unmarked": "a plan is cleared at once, not marked first",
    "refusal-forgotten": "a plan is cleared although the system did not take the memory back",
    "mark-stays": "whoever gets the lock after a dead owner leaves its mark",
}


@dataclass(frozen=True)
class Configuration:
    """Growers that go up, shrinkers that go down to the first level, tidiers that withdraw; each so many times."""

    variant: str = PLANS
    growers: tuple[int, ...] = (2,)
    shrinkers: tuple[int, ...] = (1,)
    tidiers: tuple[int, ...] = (1,)
    levels: int = 4
    kills: int = 0

    def __post_init__(self) -> None:
        if self.variant not in VARIANTS:
            raise ValueError(f"variant must be one of {', '.join(VARIANTS)}: variant={self.variant!r}")
        if self.levels < 3:
            raise ValueError(f"there must be a level beyond the next: levels={self.levels}; try 3")

    @property
    def is_sound(self) -> bool:
        return self.variant == PLANS

    def __str__(self) -> str:
        return (
            f"{self.variant}: growers={self.growers} shrinkers={self.shrinkers} tidiers={self.tidiers} "
            f"levels={self.levels} kills={self.kills}"
        )
