"""The overwriting queue: its locks, its journal and its shelf, under kills at every step.

The algorithm reads like the native one: puts and gets in `steps`, leases in `lease`.
`python -m models.overwriting --help` runs it.
"""

from models.overwriting.model import OverwritingModel
from models.overwriting.rules import RING, VARIANTS, Configuration

__all__ = ["RING", "VARIANTS", "Configuration", "OverwritingModel"]
