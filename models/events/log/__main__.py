"""Command line: search one configuration of the log, or a preset campaign."""

from __future__ import annotations

import argparse
import sys

from models.core.command import Command, words
from models.events.log.campaign import CAMPAIGN
from models.events.log.rules import READER_ROLES, VARIANTS, Configuration

EXAMPLES = """\
  python -m models.events.log --short
  python -m models.events.log --long --json > events.json
  python -m models.events.log --writers 12,c --readers ephemeral,durable --kills 1
  python -m models.events.log --writers 111 --newcomer 1 --kills 2 --blocks 1
  python -m models.events.log --variant no-take-over --writers 1,1 --kills 1 --trace
"""


def _add_arguments(size: argparse._ArgumentGroup) -> None:
    size.add_argument(
        "--writers",
        type=words,
        metavar="OPERATIONS,…",
        help="a writer's operations in turn: 1, 2 put so many items, l, x a long one, c clears, k keeps the last (1)",
    )
    size.add_argument(
        "--readers",
        type=words,
        metavar="ROLE,…",
        help=f"what readers there are (ephemeral): {', '.join(READER_ROLES)}",
    )
    size.add_argument("--newcomer", metavar="OPERATIONS", help="what the owner of a dead line does (nobody)")
    size.add_argument("--chunk-items", type=int, metavar="N", help="items of a chunk (1)")
    size.add_argument("--chunk-lines", type=int, metavar="N", help="lines of the directory (4)")
    size.add_argument("--blocks", type=int, metavar="N", help="chunks that there is memory for (2)")
    size.add_argument("--may-drop", action="store_true", help="a full log drops its slowest reader")
    size.add_argument("--short-sessions", action="store_true", help="a reader gets one item a session")


COMMAND = Command(
    name="events.log",
    description="Search the log of events with a kill at every step.",
    examples=EXAMPLES,
    campaign=CAMPAIGN,
    configuration=Configuration,
    variants=VARIANTS,
    add_arguments=_add_arguments,
)

if __name__ == "__main__":
    sys.exit(COMMAND.main())
