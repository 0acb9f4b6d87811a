"""Which configurations of settling are searched, and what each must show."""

from __future__ import annotations

from models.core.campaign import Campaign, Case
from models.events.cuts.model import BELIEVED, SILENT, UNTOLD, CutsModel
from models.events.cuts.rules import Configuration

BROKEN: tuple[Case[Configuration], ...] = (
    Case(Configuration(variant="lines-only"), BELIEVED),
    Case(Configuration(variant="shared-early"), BELIEVED),
    Case(Configuration(variant="noted-first", kills=1), BELIEVED),
    Case(Configuration(variant="noted-before-counted", kills=1), SILENT),
    Case(Configuration(variant="never-counted", openers=1), SILENT),
    Case(Configuration(variant="lowered-first", kills=1), UNTOLD),
)

SOUND_SHORT: tuple[Case[Configuration], ...] = (
    Case(Configuration(openers=1)),
    Case(Configuration(openers=2, kills=1)),
    Case(Configuration(openers=3, kills=2)),
)
SOUND_LONG: tuple[Case[Configuration], ...] = (Case(Configuration(openers=4, kills=3)),)

CAMPAIGN = Campaign(CutsModel, Configuration, SOUND_SHORT, BROKEN, SOUND_LONG)
