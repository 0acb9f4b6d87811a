"""Command line: search one configuration of the plans, or a preset campaign."""

from __future__ import annotations

import argparse
import sys

from models.core.command import Command, numbers
from models.growing.plans.campaign import CAMPAIGN
from models.growing.plans.rules import VARIANTS, Configuration

EXAMPLES = """\
  python -m models.growing.plans --short
  python -m models.growing.plans --long --json > plans.json
  python -m models.growing.plans --growers 3,3 --tidiers 1 --kills 1
  python -m models.growing.plans --variant unconfirmed --growers 4 --trace
"""


def _add_arguments(size: argparse._ArgumentGroup) -> None:
    size.add_argument("--growers", type=numbers, metavar="N,…", help="how often each of them goes up (2)")
    size.add_argument("--shrinkers", type=numbers, metavar="N,…", help="how often each of them goes down (1)")
    size.add_argument("--tidiers", type=numbers, metavar="N,…", help="how often each of them withdraws (1)")
    size.add_argument("--levels", type=int, metavar="N", help="how many there are (4)")


COMMAND = Command(
    name="growing.plans",
    description="Search the plans of the growing queue's levels with a kill at every step.",
    examples=EXAMPLES,
    campaign=CAMPAIGN,
    configuration=Configuration,
    variants=VARIANTS,
    add_arguments=_add_arguments,
)

if __name__ == "__main__":
    sys.exit(COMMAND.main())
