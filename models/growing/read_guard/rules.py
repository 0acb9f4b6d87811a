"""How big a world is, and which rule of the algorithm is broken in it."""

from __future__ import annotations

from dataclasses import dataclass

from models.core.configuration import Configuration as BaseConfiguration
from models.core.configuration import option

LOOKS = "looks"

VARIANTS = {
    LOOKS: "the algorithm",
    "unannounced": "nobody says that it looks",
    "seen-first": "the stage is read before the look is announced",
    "no-fence": "who gives back makes nobody's announcement visible",
    "over-early": "a look is said to be over before it is",
    "asked-first": "the lines are read before the stage",
    "the-dead-too": "a look of the dead holds memory back",
    "after-the-lock": "who takes over from the dead announces its look when it has left the lock",
}


@dataclass(frozen=True)
class Configuration(BaseConfiguration):
    """Lookers that look at what is in use, adopters that look at a level that was left, tidiers that give back."""

    VARIANTS = VARIANTS

    lookers: tuple[int, ...] = option((2,), "how often each looks at what is in use")
    adopters: tuple[int, ...] = option((), "how often each looks at what was left")
    tidiers: tuple[int, ...] = option((2,), "how often each gives back")
    moves: int = option(3, "how often the stage moves; else nothing is given back", least=1)
