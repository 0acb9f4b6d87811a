"""The plans of the growing queue's levels: made, used and withdrawn, under kills at every step.

`python -m models.growing.plans --help` runs it.
"""

from models.growing.plans.model import PlansModel
from models.growing.plans.rules import PLANS, VARIANTS, Configuration

__all__ = ["PLANS", "VARIANTS", "Configuration", "PlansModel"]
