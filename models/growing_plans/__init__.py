"""The plans of the growing queue's levels: made, used and withdrawn, under kills at every step.

`python -m models.growing_plans --help` runs it.
"""

from models.growing_plans.model import PlansModel
from models.growing_plans.rules import PLANS, VARIANTS, Configuration

__all__ = ["PLANS", "VARIANTS", "Configuration", "PlansModel"]
