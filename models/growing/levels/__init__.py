"""The levels of the growing queue: closed, opened, moved and reset, with a kill at every step.

What happens within a ring is the model `ring`. Here a live participant abandons a dead producer's slot, or redelivers
a dead consumer's item, in one step.
`python -m models growing.levels` searches it.
"""

from models.growing.levels.campaign import CAMPAIGN
from models.growing.levels.model import LevelsModel
from models.growing.levels.rules import Configuration

__all__ = ["CAMPAIGN", "Configuration", "LevelsModel"]
