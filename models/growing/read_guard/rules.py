"""How big a world is, and which rule of the algorithm is broken in it."""

from __future__ import annotations

from dataclasses import dataclass

from models.core.configuration import Configuration as BaseConfiguration
from models.core.configuration import option

READ_GUARD = "read-guard"

VARIANTS = {
    READ_GUARD: "the algorithm",
    "unguarded": "no reader takes a guard",
    "range-read-first": "the level range is read before the guard is taken",
    "no-fence": "the reclaimer has no fence, so it may miss a guard",
    "guard-dropped-early": "a guard is dropped before the read",
    "guards-read-first": "the guards are read before the level range",
    "dead-guards-count": "the guard of a dead process counts",
    "guarded-after-the-lock": "a redeliverer takes its guard after it has left the lock",
}


@dataclass(frozen=True)
class Configuration(BaseConfiguration):
    """Readers of the level in use, redeliverers in a level that was left, reclaimers; each so many times."""

    VARIANTS = VARIANTS

    readers: tuple[int, ...] = option((2,), "how often each reads the level in use")
    redeliverers: tuple[int, ...] = option((), "how often each reads a level that was left")
    reclaimers: tuple[int, ...] = option((2,), "how often each gives memory back")
    moves: int = option(3, "how often the level range moves; else nothing is given back", least=1)
