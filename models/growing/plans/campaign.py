"""Which configurations of the plans are searched, and what each must show."""

from __future__ import annotations

from models.core.campaign import Campaign, Case
from models.core.search import STUCK
from models.growing.plans.model import UNCOUNTED, UNRESERVED, PlansModel
from models.growing.plans.rules import Configuration

BROKEN: tuple[Case[Configuration], ...] = (
    Case(Configuration(variant="unconfirmed", growers=(4,), shrinkers=()), UNRESERVED),
    Case(Configuration(variant="next-too", growers=(4,), shrinkers=()), UNRESERVED),
    Case(Configuration(variant="unmarked", growers=(4,), shrinkers=()), UNCOUNTED),
    Case(Configuration(variant="refusal-forgotten", growers=(4,), shrinkers=()), UNCOUNTED),
    Case(Configuration(variant="mark-stays", growers=(4,), shrinkers=(), kills=1), STUCK),
)

SOUND_SHORT: tuple[Case[Configuration], ...] = (
    Case(Configuration(growers=(4,), shrinkers=(), reclaimers=(1, 1), kills=2)),
    Case(Configuration(growers=(2, 1), shrinkers=(1,), reclaimers=(1,), levels=3, kills=1)),
    Case(Configuration(growers=(2, 2), shrinkers=(), reclaimers=(1,), kills=1)),
)
SOUND_LONG: tuple[Case[Configuration], ...] = (
    Case(Configuration(growers=(3, 3), shrinkers=(1,), reclaimers=(1,), kills=1)),
)

CAMPAIGN = Campaign(PlansModel, Configuration, SOUND_SHORT, BROKEN, SOUND_LONG)
