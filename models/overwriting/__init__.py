"""The overwriting queue: its locks, its journal and its leased messages, with a kill at every step.

The algorithm reads like the native one: puts and gets in `steps`, leases in `lease`.
`python -m models overwriting` searches it.
"""

from models.overwriting.campaign import CAMPAIGN
from models.overwriting.model import OverwritingModel
from models.overwriting.rules import Configuration

__all__ = ["CAMPAIGN", "Configuration", "OverwritingModel"]
