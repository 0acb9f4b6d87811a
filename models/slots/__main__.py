"""Command line: search one configuration of the slots, or a preset campaign."""

from __future__ import annotations

import argparse
import sys

from models.core.command import Command
from models.slots.campaign import CAMPAIGN
from models.slots.rules import VARIANTS, Configuration

EXAMPLES = """\
  python -m models.slots --short
  python -m models.slots --long --json > slots.json
  python -m models.slots --slots 2 --producers 2 --kills 1
  python -m models.slots --items 2 --overwrites --kills 1
  python -m models.slots --once --producers 3 --kills 2
  python -m models.slots --variant arriving-not-looked-for --producers 2 --kills 1 --trace
"""


def _add_arguments(size: argparse._ArgumentGroup) -> None:
    size.add_argument("--slots", type=int, metavar="N", help="how many there are (1)")
    size.add_argument("--producers", type=int, metavar="N", help="participants that put (1)")
    size.add_argument("--items", type=int, metavar="N", help="items of each producer (1)")
    size.add_argument("--consumers", type=int, metavar="N", help="participants that get (1)")
    size.add_argument("--overwrites", action="store_true", help="producers evict when no slot is free")
    size.add_argument("--once", action="store_true", help="producers are lives of one that has a name")


COMMAND = Command(
    name="slots",
    description="Search the slots and their index queues with a kill at every step.",
    examples=EXAMPLES,
    campaign=CAMPAIGN,
    configuration=Configuration,
    variants=VARIANTS,
    add_arguments=_add_arguments,
)

if __name__ == "__main__":
    sys.exit(COMMAND.main())
