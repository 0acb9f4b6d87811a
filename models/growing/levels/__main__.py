"""Command line: search one configuration of the levels, or a preset campaign."""

from __future__ import annotations

import argparse
import sys

from models.core.command import Command, numbers
from models.growing.levels.campaign import CAMPAIGN
from models.growing.levels.rules import VARIANTS, Configuration

EXAMPLES = """\
  python -m models.growing.levels --short
  python -m models.growing.levels --long --json > growing.json
  python -m models.growing.levels --producers 3,1 --consumers 1 --kills 1
  python -m models.growing.levels --variant naive --producers 3,1 --trace
"""


def _add_arguments(size: argparse._ArgumentGroup) -> None:
    size.add_argument("--producers", type=numbers, metavar="N,…", help="how many items each of them puts (3)")
    size.add_argument("--consumers", type=int, metavar="N", help="how many there are (1)")
    size.add_argument("--slots", type=numbers, metavar="N,…", help="slots of each level (2,2)")
    size.add_argument("--shrinks", type=int, metavar="N", help="how often an empty ring may be closed (0)")


COMMAND = Command(
    name="growing.levels",
    description="Search the levels of the growing queue with a kill at every step.",
    examples=EXAMPLES,
    campaign=CAMPAIGN,
    configuration=Configuration,
    variants=VARIANTS,
    add_arguments=_add_arguments,
)

if __name__ == "__main__":
    sys.exit(COMMAND.main())
