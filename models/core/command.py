"""Command line of a model: search one configuration, or a preset campaign."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Generic

from models.core.campaign import Campaign, Case, CaseReport, Size
from models.core.search import StateLimitExceeded

EXIT_STATUS = """\
exit status:
  0  every search showed what it must: the algorithm is clean, a broken variant is caught
  1  the algorithm failed, or a broken variant was not caught
  2  nothing was shown: bad arguments, or more states than --state-limit
"""

EXIT_AS_EXPECTED, EXIT_UNEXPECTED, EXIT_UNDECIDED = range(3)
STATE_LIMIT = 8_000_000


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(","))


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


@dataclass(frozen=True)
class Command(Generic[Size]):
    """`python -m models.NAME`; the model says which arguments make a configuration, besides kills and a variant.

    Arguments that were not given are left out, so that the configuration's defaults hold.
    """

    name: str
    description: str
    examples: str
    campaign: Campaign[Size]
    configuration: Callable[..., Size]
    variants: Collection[str]
    """The algorithm first."""
    add_arguments: Callable[[argparse._ArgumentGroup], None]

    def parser(self) -> argparse.ArgumentParser:
        parser = argparse.ArgumentParser(
            prog=f"python -m models.{self.name}",
            description=self.description,
            epilog=f"examples:\n{self.examples}\n{EXIT_STATUS}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            argument_default=argparse.SUPPRESS,
        )
        size = parser.add_argument_group("one configuration")
        self.add_arguments(size)
        size.add_argument(
            "--kills", type=int, metavar="N", help=f"how many may be killed ({self.configuration().kills})"
        )
        names = list(self.variants)
        size.add_argument(
            "--variant", choices=names, metavar="NAME", help=f"which algorithm ({names[0]}): {', '.join(names)}"
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

    def main(self, arguments: Sequence[str] | None = None) -> int:
        parser = self.parser()
        chosen = vars(parser.parse_args(arguments))
        is_json, with_trace = chosen.pop("json", False), chosen.pop("trace", False)
        state_limit = chosen.pop("state_limit", STATE_LIMIT)
        cases = self._cases(parser, chosen)
        reports = []
        for number, case in enumerate(cases, 1):
            print(f"{number}/{len(cases)} {case.configuration}", file=sys.stderr)
            try:
                report = self.campaign.run(case, state_limit=state_limit, progress=_progress(case))
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

    def _cases(self, parser: argparse.ArgumentParser, chosen: dict[str, Any]) -> Sequence[Case[Size]]:
        is_short, is_long = chosen.pop("short", False), chosen.pop("long", False)
        if is_short or is_long:
            if chosen:
                parser.error("--short and --long bring their own sizes: leave out the others")
            return self.campaign.long if is_long else self.campaign.short
        try:
            return [Case(self.configuration(**chosen))]
        except ValueError as error:
            parser.error(str(error))


def _progress(case: Case[Size]) -> Callable[[int, int], None]:
    def report(visited: int, known: int) -> None:
        print(f"  {case.configuration}: {visited:,} of {known:,} states", file=sys.stderr)

    return report


def _print(report: CaseReport[Size], *, with_trace: bool) -> None:
    print(report, flush=True)
    if with_trace or not report.is_passed:
        for found in report.result.counterexamples.values():
            print(found, flush=True)
