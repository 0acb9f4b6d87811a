"""Command line: search one configuration of the looks, or a preset campaign."""

from __future__ import annotations

import argparse
import sys

from models.core.command import Command, numbers
from models.growing.read_guard.campaign import CAMPAIGN
from models.growing.read_guard.rules import VARIANTS, Configuration

EXAMPLES = """\
  python -m models.growing.read_guard --short
  python -m models.growing.read_guard --long --json > looks.json
  python -m models.growing.read_guard --lookers 2,1 --tidiers 2 --kills 1
  python -m models.growing.read_guard --variant no-fence --lookers 1 --moves 1 --trace
"""


def _add_arguments(size: argparse._ArgumentGroup) -> None:
    size.add_argument("--lookers", type=numbers, metavar="N,…", help="how often each looks at what is in use (2)")
    size.add_argument("--adopters", type=numbers, metavar="N,…", help="how often each looks at what was left (none)")
    size.add_argument("--tidiers", type=numbers, metavar="N,…", help="how often each gives back (2)")
    size.add_argument("--moves", type=int, metavar="N", help="how often the stage moves (3)")


COMMAND = Command(
    name="growing.read_guard",
    description="Search looks at the growing queue's memory, with late stores and a kill at every step.",
    examples=EXAMPLES,
    campaign=CAMPAIGN,
    configuration=Configuration,
    variants=VARIANTS,
    add_arguments=_add_arguments,
)

if __name__ == "__main__":
    sys.exit(COMMAND.main())
