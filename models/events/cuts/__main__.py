"""Command line: search one configuration of settling, or a preset campaign."""

from __future__ import annotations

import argparse
import sys

from models.core.command import Command
from models.events.cuts.campaign import CAMPAIGN
from models.events.cuts.rules import VARIANTS, Configuration

EXAMPLES = """\
  python -m models.events.cuts --short
  python -m models.events.cuts --openers 3 --kills 2
  python -m models.events.cuts --variant lines-only --trace
"""


def _add_arguments(size: argparse._ArgumentGroup) -> None:
    size.add_argument("--openers", type=int, metavar="N", help="who open the log at once (2)")


COMMAND = Command(
    name="events.cuts",
    description="Search the settling of a log after a crash of the machine, with a kill at every step.",
    examples=EXAMPLES,
    campaign=CAMPAIGN,
    configuration=Configuration,
    variants=VARIANTS,
    add_arguments=_add_arguments,
)

if __name__ == "__main__":
    sys.exit(COMMAND.main())
