"""The levels of the growing queue: closing, opening, moving and resetting them, under kills at every step.

What a ring does within itself is the model of ring: here a dead producer's slot is buried, and a dead
consumer's item adopted, in one step of whoever lives.
`python -m models growing.levels` searches it.
"""

from models.growing.levels.campaign import CAMPAIGN
from models.growing.levels.model import LevelsModel
from models.growing.levels.rules import Configuration

__all__ = ["CAMPAIGN", "Configuration", "LevelsModel"]
