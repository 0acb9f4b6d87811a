"""The bounded queue with its ledger of intents, under kills at every step.

The algorithm reads like the native one: `producer`, `consumer`, `recovery`, `redelivery`, `newcomer`.
`python -m models.ring --help` runs it.
"""

from models.ring.model import LedgerModel
from models.ring.rules import LEDGER, VARIANTS, Configuration

__all__ = ["LEDGER", "VARIANTS", "Configuration", "LedgerModel"]
