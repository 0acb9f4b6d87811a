"""The bounded queue with its ledger of intents, under kills at every step.

The algorithm reads like the native one: `putting`, `getting`, `recovering`, `adopting`, `joining`.
`python -m models.bounded_ledger --help` runs it.
"""

from models.bounded_ledger.model import LedgerModel
from models.bounded_ledger.rules import LEDGER, VARIANTS, Configuration

__all__ = ["LEDGER", "VARIANTS", "Configuration", "LedgerModel"]
