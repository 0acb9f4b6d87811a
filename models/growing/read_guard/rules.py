"""How big a world is, and which rule of the algorithm is broken in it."""

from __future__ import annotations

from dataclasses import dataclass

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
class Configuration:
    """Lookers that look at what is in use, adopters that look at a level that was left, tidiers that give back."""

    variant: str = LOOKS
    lookers: tuple[int, ...] = (2,)
    adopters: tuple[int, ...] = ()
    tidiers: tuple[int, ...] = (2,)
    moves: int = 3
    kills: int = 0

    def __post_init__(self) -> None:
        if self.variant not in VARIANTS:
            raise ValueError(f"variant must be one of {', '.join(VARIANTS)}: variant={self.variant!r}")
        if self.moves < 1:
            raise ValueError(f"the stage must move, or nothing is ever given back: moves={self.moves}; try 2")

    @property
    def is_sound(self) -> bool:
        return self.variant == LOOKS

    def __str__(self) -> str:
        return (
            f"{self.variant}: lookers={self.lookers} adopters={self.adopters} tidiers={self.tidiers} "
            f"moves={self.moves} kills={self.kills}"
        )
