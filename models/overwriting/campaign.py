"""Which configurations of the overwriting queue are searched, and what each must show."""

from __future__ import annotations

from models.core.campaign import Campaign, Case
from models.core.search import STUCK
from models.overwriting.model import OverwritingModel
from models.overwriting.rules import Configuration
from models.overwriting.world import LOST, MISCOUNTED, TORN

# The smallest world that shows each mistake.
BROKEN: tuple[Case[Configuration], ...] = (
    Case(Configuration(variant="no-take-over", kills=1), STUCK),
    Case(Configuration(variant="no-tenure", programs=("p", "p"), newcomer="p", kills=1), STUCK),
    Case(Configuration(variant="no-settle", kills=1), MISCOUNTED),
    Case(Configuration(variant="no-commit", kills=1), MISCOUNTED),
    Case(Configuration(variant="commit-before-written", programs=("p", "p"), kills=1), MISCOUNTED),
    Case(Configuration(variant="journal-of-increments", programs=("p", "g"), kills=1), MISCOUNTED),
    Case(Configuration(variant="publish-before-copy"), TORN),
    Case(Configuration(variant="take-from-living-writer", programs=("p", "p", "g")), LOST),
    Case(Configuration(variant="dead-writer-taken-as-done", kills=1), LOST),
    Case(Configuration(variant="lock-of-the-dead-read-once", programs=("pp", "g"), kills=1), LOST),
    Case(Configuration(variant="read-without-last-check", programs=("pp", "g")), TORN),
    Case(Configuration(variant="count-after-end", programs=("pp", "g", "p")), MISCOUNTED),
    Case(Configuration(variant="non-overwriting-put-takes-from-reader", programs=("kk", "g")), LOST),
    Case(Configuration(variant="cell-named-later", programs=("p", "lp")), MISCOUNTED),
    Case(Configuration(variant="ring-before-cell", programs=("p", "l")), LOST),
    Case(Configuration(variant="cell-freed-before-counted", programs=("pp", "l", "p"), kills=1), MISCOUNTED),
    Case(Configuration(variant="hold-before-copy", programs=("p", "l", "l"), kills=1), TORN),
    Case(Configuration(variant="take-from-living-holder", programs=("p", "l", "l")), TORN),
)

SOUND_SHORT: tuple[Case[Configuration], ...] = (
    Case(Configuration(programs=("pp", "gg"), kills=2)),
    Case(Configuration(programs=("pp", "gg"), capacity=2, kills=2)),
    Case(Configuration(programs=("ppp", "g"), capacity=2, kills=1)),
    Case(Configuration(programs=("kk", "gg"), kills=2)),
    Case(Configuration(programs=("p", "p", "g"), kills=1)),
    Case(Configuration(programs=("p", "g", "g"), kills=2)),
    Case(Configuration(programs=("p", "g"), newcomer="g", kills=2)),
    Case(Configuration(programs=("p", "g"), newcomer="p", kills=2)),
    Case(Configuration(programs=("p", "k", "g"), capacity=2, kills=1)),
    Case(Configuration(programs=("pp", "p", "g"), kills=2)),
    Case(Configuration(programs=("pp", "gg"), newcomer="pg", kills=2)),
    Case(Configuration(programs=("pp", "g", "g"), capacity=2, kills=2)),
    Case(Configuration(programs=("pp", "ll"), kills=2)),
    Case(Configuration(programs=("p", "l", "g"), kills=2)),
    Case(Configuration(programs=("kk", "l", "l"), kills=1)),
    Case(Configuration(programs=("pp", "l"), newcomer="l", kills=2)),
    Case(Configuration(programs=("ppp", "ll"), capacity=2, cells=2, kills=2)),
)
SOUND_LONG: tuple[Case[Configuration], ...] = (
    Case(Configuration(programs=("pp", "pp", "gg"), kills=1)),
    Case(Configuration(programs=("pp", "p", "gg"), capacity=2, kills=2)),
    Case(Configuration(programs=("pp", "gg", "g"), newcomer="g", kills=2)),
    Case(Configuration(programs=("p", "p", "g", "g"), kills=2)),
    Case(Configuration(programs=("p", "p", "g"), capacity=2, kills=3)),
    Case(Configuration(programs=("pk", "kg", "g"), capacity=2, kills=1)),
    Case(Configuration(programs=("pp", "l", "l"), cells=2, kills=2)),
    Case(Configuration(programs=("pp", "ll", "g"), cells=2, kills=2)),
    Case(Configuration(programs=("pp", "l", "g"), capacity=2, newcomer="l", kills=2)),
    Case(Configuration(programs=("pp", "p", "l"), kills=2)),
    Case(Configuration(programs=("p", "l", "l", "l"), cells=2, kills=3)),
)

CAMPAIGN = Campaign(OverwritingModel, Configuration, SOUND_SHORT, BROKEN, SOUND_LONG)
