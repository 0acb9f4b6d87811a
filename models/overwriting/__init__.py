"""The overwriting queue: its locks and its journal, under kills at every step.

The algorithm reads like the native one: `locking`, `putting`, `getting`.
`python -m models.overwriting --help` runs it.
"""

from models.overwriting.model import OverwritingModel
from models.overwriting.rules import RING, VARIANTS, Configuration

__all__ = ["RING", "VARIANTS", "Configuration", "OverwritingModel"]
