"""The size of the world, and the ways to settle a boot wrongly."""

from __future__ import annotations

from dataclasses import dataclass

from models.core.configuration import Configuration as BaseConfiguration
from models.core.configuration import option

CUTS = "cuts"

VARIANTS: dict[str, str] = {
    CUTS: "the algorithm",
    "lines-only": "an opener checks only whether a line is held, and holds no settling lock",
    "shared-early": "the settling lock is shared before the cut is made",
    "noted-first": "the witnesses are stored before the cut",
    "noted-before-counted": "the witnesses are stored before the cut is counted",
    "never-counted": "a cut is not counted",
    "lowered-first": "a reader's place is lowered before it is noted where it was",
}


@dataclass(frozen=True)
class Configuration(BaseConfiguration):
    """Openers of the log after a crash of the machine; each settles and puts one item."""

    VARIANTS = VARIANTS

    openers: int = option(2, "participants that open the log at once", least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.openers > 4:
            raise ValueError(f"1 to 4 openers: openers={self.openers}")
