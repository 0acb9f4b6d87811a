"""Command line: search one configuration, or a preset campaign."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence

from models.bounded_ledger.campaign import LONG, SHORT, Case, CaseReport, run_case
from models.bounded_ledger.rules import LEDGER, VARIANTS, Configuration
from models.search import StateLimitExceeded

EXAMPLES = """\
examples:
  python -m models.bounded_ledger --short
  python -m models.bounded_ledger --long --json > ledger.json
  python -m models.bounded_ledger --producers 2 --consumers 2 --kills 2
  python -m models.bounded_ledger --capacity 4 --items 2 --item-slots 2,1 --rejoin 1
  python -m models.bounded_ledger --variant plain --trace

exit status:
  0  every search showed what it must: the ledger is clean, a broken variant is caught
  1  the ledger failed, or a broken variant was not caught
  2  nothing was shown: bad arguments, or more states than --state-limit
"""

EXIT_AS_EXPECTED, EXIT_UNEXPECTED, EXIT_UNDECIDED = range(3)
STATE_LIMIT = 8_000_000


def _slots(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m models.bounded_ledger",
        description="Search the bounded queue's ledger with a kill at every step.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        argument_default=argparse.SUPPRESS,
    )
    size = parser.add_argument_group("one configuration")
    size.add_argument("--capacity", type=int, metavar="N", help="slots of the ring (2)")
    size.add_argument("--producers", type=int, metavar="N", help="participants that put (1)")
    size.add_argument("--items", type=int, metavar="N", help="items of each producer (1)")
    size.add_argument("--consumers", type=int, metavar="N", help="participants that get (1)")
    size.add_argument("--kills", type=int, metavar="N", help="how many may be killed (1)")
    size.add_argument(
        "--item-slots",
        type=_slots,
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
        "--variant",
        choices=VARIANTS,
        metavar="NAME",
        help=f"which algorithm ({LEDGER}): {', '.join(VARIANTS)}",
    )
    size.add_argument(
        "--exact",
        action="store_true",
        dest="is_exact",
        help="keep the steps of recoveries that cannot change anything",
    )
    preset = parser.add_mutually_exclusive_group()
    preset.add_argument("--short", action="store_true", help="the campaign of the test suite")
    preset.add_argument("--long", action="store_true", help="the campaign of `make crash`")
    parser.add_argument("--json", action="store_true", help="report as JSON on standard output")
    parser.add_argument("--trace", action="store_true", help="print every counterexample")
    parser.add_argument(
        "--state-limit",
        type=int,
        metavar="N",
        help=f"give up beyond this many states ({STATE_LIMIT})",
    )
    return parser


def _cases(parser: argparse.ArgumentParser, chosen: dict[str, object]) -> Sequence[Case]:
    is_short, is_long = chosen.pop("short", False), chosen.pop("long", False)
    if is_short or is_long:
        if chosen:
            parser.error("--short and --long bring their own sizes: leave out the others")
        return LONG if is_long else SHORT
    try:
        return [Case(Configuration(**chosen))]  # type: ignore[arg-type]
    except ValueError as error:
        parser.error(str(error))


def _progress(case: Case) -> Callable[[int, int], None]:
    def report(visited: int, known: int) -> None:
        print(f"  {case.configuration}: {visited:,} of {known:,} states", file=sys.stderr)

    return report


def _print(report: CaseReport, *, with_trace: bool) -> None:
    print(report, flush=True)
    if with_trace or not report.is_passed:
        for found in report.result.counterexamples.values():
            print(found, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    chosen = vars(parser.parse_args(arguments))
    is_json, with_trace = chosen.pop("json", False), chosen.pop("trace", False)
    state_limit = chosen.pop("state_limit", STATE_LIMIT)
    cases = _cases(parser, chosen)
    reports = []
    for number, case in enumerate(cases, 1):
        print(f"{number}/{len(cases)} {case.configuration}", file=sys.stderr)
        try:
            report = run_case(case, state_limit=state_limit, progress=_progress(case))
        except StateLimitExceeded as error:
            print(f"error: {case.configuration}: {error}", file=sys.stderr)
            return EXIT_UNDECIDED
        reports.append(report)
        if not is_json:
            _print(report, with_trace=with_trace)
    if is_json:
        print(json.dumps([report.as_json() for report in reports], indent=2))
    is_passed = all(report.is_passed for report in reports)
    return EXIT_AS_EXPECTED if is_passed else EXIT_UNEXPECTED


if __name__ == "__main__":
    sys.exit(main())
