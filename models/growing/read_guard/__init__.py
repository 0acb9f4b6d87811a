"""The read guard of the growing queue, with stores that are seen late and a kill at every step.

`python -m models growing.read_guard` searches it.
"""

from models.growing.read_guard.campaign import CAMPAIGN
from models.growing.read_guard.model import ReadGuardModel
from models.growing.read_guard.rules import Configuration

__all__ = ["CAMPAIGN", "Configuration", "ReadGuardModel"]
