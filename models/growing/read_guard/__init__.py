"""Looks at the growing queue's memory, and its giving back, with stores that are seen late and kills at every step.

`python -m models growing.read_guard` searches it.
"""

from models.growing.read_guard.campaign import CAMPAIGN
from models.growing.read_guard.model import LooksModel
from models.growing.read_guard.rules import Configuration

__all__ = ["CAMPAIGN", "Configuration", "LooksModel"]
