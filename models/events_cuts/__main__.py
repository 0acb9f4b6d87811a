"""Command line: search one configuration of settling, or a preset campaign."""

from __future__ import annotations

import argparse
import sys

from models.command import Command
from models.events_cuts.campaign import CAMPAIGN
from models.events_cuts.rules import VARIANTS, Configuration

EXAMPLES = """\
  python -m models.events_cuts --short
  python -m models.events_cuts --openers 3 --kills 2
  python -m models.events_cuts --variant lines-only --trace
"""


def _add_arguments(size: argparse._ArgumentGroup) -> None:
    size.add_argument("--openers", type=int, metavar="N", help="who open the log at once (2)")


COMMAND = Command(
    name="events_cuts",
    description="Search the settling of a log after a crash of the machine, with a kill at every step.",
    examples=EXAMPLES,
    campaign=CAMPAIGN,
    configuration=Configuration,
    variants=VARIANTS,
    add_arguments=_add_arguments,
)

if __name__ == "__main__":
    sys.exit(COMMAND.main())
