"""The plans of the growing queue's levels: made, used and withdrawn, with a kill at every step.

`python -m models growing.plans` searches it.
"""

from models.growing.plans.campaign import CAMPAIGN
from models.growing.plans.model import PlansModel
from models.growing.plans.rules import Configuration

__all__ = ["CAMPAIGN", "Configuration", "PlansModel"]
