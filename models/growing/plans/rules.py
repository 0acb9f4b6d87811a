"""How big a world is, and which rule of the algorithm is broken in it."""

from __future__ import annotations

from dataclasses import dataclass

from models.core.configuration import Configuration as BaseConfiguration
from models.core.configuration import option

PLANS = "plans"

VARIANTS = {
    PLANS: "the algorithm",
    "unconfirmed": "a level is withdrawn without a check that the level range is still the one judged",
    "next-too": "the level after the written one is withdrawn as well",
    "unmarked": "a plan is cleared at once, not marked first",
    "refusal-forgotten": "a plan is cleared although the system did not take the memory back",
    "mark-stays": "the next owner of the lock leaves the mark of a dead one",
}


@dataclass(frozen=True)
class Configuration(BaseConfiguration):
    """Growers that go up, shrinkers that go down to the first level, reclaimers that withdraw; each so many times."""

    VARIANTS = VARIANTS

    growers: tuple[int, ...] = option((2,), "how often each of them goes up")
    shrinkers: tuple[int, ...] = option((1,), "how often each of them goes down")
    reclaimers: tuple[int, ...] = option((1,), "how often each of them withdraws")
    levels: int = option(4, "how many there are; one must lie beyond the next", least=3)
