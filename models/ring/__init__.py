"""The ring with its ledger of intents and its recovery, with a kill at every step.

The algorithm reads like the native one: `producer`, `consumer`, `recovery`, `redelivery`, `newcomer`.
`python -m models ring` searches it.
"""

from models.ring.campaign import CAMPAIGN
from models.ring.model import LedgerModel
from models.ring.rules import Configuration

__all__ = ["CAMPAIGN", "Configuration", "LedgerModel"]
