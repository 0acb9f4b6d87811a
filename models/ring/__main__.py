"""Command line: search one configuration of the ledger, or a preset campaign."""

from __future__ import annotations

import argparse
import sys

from models.core.command import Command, numbers
from models.ring.campaign import CAMPAIGN
from models.ring.rules import VARIANTS, Configuration

EXAMPLES = """\
  python -m models.ring --short
  python -m models.ring --long --json > ledger.json
  python -m models.ring --producers 2 --consumers 2 --kills 2
  python -m models.ring --capacity 4 --items 2 --item-slots 2,1 --rejoin 1
  python -m models.ring --variant plain --trace
"""


def _add_arguments(size: argparse._ArgumentGroup) -> None:
    size.add_argument("--capacity", type=int, metavar="N", help="slots of the ring (2)")
    size.add_argument("--producers", type=int, metavar="N", help="participants that put (1)")
    size.add_argument("--items", type=int, metavar="N", help="items of each producer (1)")
    size.add_argument("--consumers", type=int, metavar="N", help="participants that get (1)")
    size.add_argument(
        "--item-slots",
        type=numbers,
        metavar="N,…",
        help="slots of an item, in turn: 2 or 1,2 (1)",
    )
    size.add_argument(
        "--rejoin",
        type=int,
        metavar="N",
        dest="rejoins",
        help="1 if a newcomer may take over a dead line (0)",
    )
    size.add_argument(
        "--exact",
        action="store_true",
        dest="is_exact",
        help="keep the steps of recoveries that cannot change anything",
    )


COMMAND = Command(
    name="ring",
    description="Search the bounded queue's ledger with a kill at every step.",
    examples=EXAMPLES,
    campaign=CAMPAIGN,
    configuration=Configuration,
    variants=VARIANTS,
    add_arguments=_add_arguments,
)

if __name__ == "__main__":
    sys.exit(COMMAND.main())
