"""How a log is settled after a crash of the machine, with several who open it and a kill at every step.

`python -m models.events.cuts --help` runs it.
"""

from models.events.cuts.model import CutsModel
from models.events.cuts.rules import CUTS, VARIANTS, Configuration

__all__ = ["CUTS", "VARIANTS", "Configuration", "CutsModel"]
