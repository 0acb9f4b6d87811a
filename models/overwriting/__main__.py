"""Command line: search one configuration of the overwriting queue, or a preset campaign."""

from __future__ import annotations

import argparse
import sys

from models.core.command import Command, words
from models.overwriting.campaign import CAMPAIGN
from models.overwriting.rules import VARIANTS, Configuration

EXAMPLES = """\
  python -m models.overwriting --short
  python -m models.overwriting --long --json > overwriting.json
  python -m models.overwriting --programs pp,gg --kills 2
  python -m models.overwriting --variant no-settle --programs p,g --kills 1 --trace
"""


def _add_arguments(size: argparse._ArgumentGroup) -> None:
    size.add_argument(
        "--programs",
        type=words,
        metavar="OPERATIONS,…",
        help="a process's operations in turn: p puts, k puts and overwrites nothing, g gets, l leases (p,g)",
    )
    size.add_argument("--newcomer", metavar="OPERATIONS", help="what the owner of a dead line does (nobody)")
    size.add_argument("--capacity", type=int, metavar="N", help="messages (1)")
    size.add_argument("--places", type=int, metavar="N", help="of the shelf, where leased messages are (1)")


COMMAND = Command(
    name="overwriting",
    description="Search the overwriting queue with a kill at every step.",
    examples=EXAMPLES,
    campaign=CAMPAIGN,
    configuration=Configuration,
    variants=VARIANTS,
    add_arguments=_add_arguments,
)

if __name__ == "__main__":
    sys.exit(COMMAND.main())
