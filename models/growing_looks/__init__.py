"""Looks at the growing queue's memory, and its giving back, with stores that are seen late and kills at every step.

`python -m models.growing_looks --help` runs it.
"""

from models.growing_looks.model import LooksModel
from models.growing_looks.rules import LOOKS, VARIANTS, Configuration

__all__ = ["LOOKS", "VARIANTS", "Configuration", "LooksModel"]
