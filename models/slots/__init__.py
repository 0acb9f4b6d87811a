"""The slots, their two index queues and their recovery, under kills at every step.

The algorithm reads like the native one: `queue_claim`, `queue_push`, `participants`, `recovery`.
`python -m models.slots --help` runs it.
"""

from models.slots.model import SlotsModel
from models.slots.rules import SLOTS, VARIANTS, Configuration

__all__ = ["SLOTS", "VARIANTS", "Configuration", "SlotsModel"]
