"""Looks at the growing queue's memory, and its giving back, with stores that are seen late and kills at every step.

`python -m models.growing.read_guard --help` runs it.
"""

from models.growing.read_guard.model import LooksModel
from models.growing.read_guard.rules import LOOKS, VARIANTS, Configuration

__all__ = ["LOOKS", "VARIANTS", "Configuration", "LooksModel"]
