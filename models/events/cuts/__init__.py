"""The log of events after a crash of the machine: several openers settle it, with a kill at every step.

`python -m models events.cuts` searches it.
"""

from models.events.cuts.campaign import CAMPAIGN
from models.events.cuts.model import CutsModel
from models.events.cuts.rules import Configuration

__all__ = ["CAMPAIGN", "Configuration", "CutsModel"]
