"""Command line: search one configuration of the looks, or a preset campaign."""

from __future__ import annotations

import argparse
import sys

from models.command import Command
from models.growing_looks.campaign import CAMPAIGN
from models.growing_looks.rules import LOOKS, VARIANTS, Configuration

EXAMPLES = """\
  python -m models.growing_looks --short
  python -m models.growing_looks --long --json > looks.json
  python -m models.growing_looks --lookers 2,1 --tidiers 2 --kills 1
  python -m models.growing_looks --variant no-fence --lookers 1 --moves 1 --trace
"""


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(","))


def _add_arguments(size: argparse._ArgumentGroup) -> None:
    size.add_argument("--lookers", type=_numbers, metavar="N,…", help="how often each looks at what is in use (2)")
    size.add_argument("--adopters", type=_numbers, metavar="N,…", help="how often each looks at what was left (none)")
    size.add_argument("--tidiers", type=_numbers, metavar="N,…", help="how often each gives back (2)")
    size.add_argument("--moves", type=int, metavar="N", help="how often the stage moves (3)")
    size.add_argument("--kills", type=int, metavar="N", help="how many may be killed (0)")
    size.add_argument(
        "--variant",
        choices=VARIANTS,
        metavar="NAME",
        help=f"which algorithm ({LOOKS}): {', '.join(VARIANTS)}",
    )


COMMAND = Command(
    name="growing_looks",
    description="Search looks at the growing queue's memory, with late stores and a kill at every step.",
    examples=EXAMPLES,
    campaign=CAMPAIGN,
    configuration=Configuration,
    add_arguments=_add_arguments,
)

if __name__ == "__main__":
    sys.exit(COMMAND.main())
