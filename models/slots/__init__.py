"""The slots, their two index queues and their recovery, with a kill at every step.

The algorithm reads like the native one: `queue_claim`, `queue_push`, `participants`, `recovery`.
`python -m models slots` searches it.
"""

from models.slots.campaign import CAMPAIGN
from models.slots.model import SlotsModel
from models.slots.rules import Configuration

__all__ = ["CAMPAIGN", "Configuration", "SlotsModel"]
