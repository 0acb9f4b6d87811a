"""How a log is settled after a crash of the machine, with several who open it and a kill at every step.

`python -m models events.cuts` searches it.
"""

from models.events.cuts.campaign import CAMPAIGN
from models.events.cuts.model import CutsModel
from models.events.cuts.rules import Configuration

__all__ = ["CAMPAIGN", "Configuration", "CutsModel"]
