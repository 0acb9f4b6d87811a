"""The one command of all models: search one configuration, a preset campaign, or the campaigns of all models."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

from models.core.campaign import Case, CaseReport
from models.core.configuration import add_options
from models.core.registry import RegisteredModel, registered_models
from models.core.search import StateLimitExceeded

EXIT_STATUS = """\
exit status:
  0  every search showed what it must: the algorithm is clean, a broken variant is caught
  1  the algorithm failed, or a broken variant was not caught
  2  nothing was shown: bad arguments, or more states than --state-limit
"""

EXIT_AS_EXPECTED, EXIT_UNEXPECTED, EXIT_UNDECIDED = range(3)
STATE_LIMIT = 8_000_000


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    chosen = vars(parser.parse_args(arguments))
    if chosen.pop("list", False):
        _print_list()
        return EXIT_AS_EXPECTED
    is_json, with_trace = chosen.pop("json", False), chosen.pop("trace", False)
    state_limit = chosen.pop("state_limit", STATE_LIMIT)
    searches = _searches(parser, chosen)
    reports = []
    for number, (model, case) in enumerate(searches, 1):
        title = f"{model.name} {case}"
        print(f"{number}/{len(searches)} {title}", file=sys.stderr)
        try:
            report = model.campaign.run(case, state_limit=state_limit, progress=_progress(title))
        except StateLimitExceeded as error:
            print(f"error: {title}: {error}", file=sys.stderr)
            return EXIT_UNDECIDED
        reports.append((model, report))
        if not is_json:
            _print(model, report, with_trace=with_trace)
    if is_json:
        print(json.dumps([{"model": model.name} | report.as_json() for model, report in reports], indent=2))
    is_passed = all(report.is_passed for _, report in reports)
    return EXIT_AS_EXPECTED if is_passed else EXIT_UNEXPECTED


def _parser() -> argparse.ArgumentParser:
    shared = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    preset = shared.add_mutually_exclusive_group()
    preset.add_argument("--short", action="store_true", help="the campaign of the test suite")
    preset.add_argument("--long", action="store_true", help="the campaign of `make crash`")
    shared.add_argument("--json", action="store_true", help="report as JSON on standard output")
    shared.add_argument("--trace", action="store_true", help="print every counterexample")
    shared.add_argument("--state-limit", type=int, metavar="N", help=f"give up beyond this many states ({STATE_LIMIT})")
    parser = argparse.ArgumentParser(
        prog="python -m models",
        description="Search the algorithms of the queues with a kill at every step.",
        epilog=EXIT_STATUS,
        parents=[shared],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        argument_default=argparse.SUPPRESS,
    )
    parser.add_argument("--list", action="store_true", help="print the names of the models")
    parser.add_argument("--all", action="store_true", help="search all models, with --short or --long")
    names = parser.add_subparsers(dest="name", metavar="NAME", title="models")
    for model in registered_models().values():
        one = names.add_parser(
            model.name,
            help=model.title,
            description=model.title,
            epilog=f"examples:\n{_examples(model)}\n\n{EXIT_STATUS}",
            parents=[shared],
            formatter_class=argparse.RawDescriptionHelpFormatter,
            argument_default=argparse.SUPPRESS,
        )
        add_options(one.add_argument_group("one configuration"), model.campaign.configuration)
    return parser


def _examples(model: RegisteredModel) -> str:
    campaign = model.campaign
    configurations = (str(cases[0]) for cases in (campaign.sound, campaign.broken))
    arguments = ("--short", "--long --json", *configurations)
    return "\n".join(f"  python -m models {model.name} {each}" for each in arguments)


def _searches(parser: argparse.ArgumentParser, chosen: dict[str, Any]) -> Sequence[tuple[RegisteredModel, Case[Any]]]:
    name, is_all = chosen.pop("name", None), chosen.pop("all", False)
    preset = next((each for each in ("short", "long") if chosen.pop(each, False)), None)
    if (name is not None) == is_all:
        parser.error("name one model, or give --all; --list prints the names")
    if is_all and preset is None:
        parser.error("--all needs --short or --long")
    if preset is not None:
        if chosen:
            parser.error("--short and --long bring their own sizes: leave out the others")
        searched = registered_models().values() if is_all else (registered_models()[name],)
        return [(model, case) for model in searched for case in getattr(model.campaign, preset)]
    model = registered_models()[name]
    try:
        return [(model, Case(model.campaign.configuration(**chosen)))]
    except ValueError as error:
        parser.error(str(error))


def _print_list() -> None:
    width = max(map(len, registered_models()))
    for model in registered_models().values():
        print(f"{model.name:{width}}  {model.title}")


def _progress(title: str) -> Callable[[int, int], None]:
    def report(visited: int, known: int) -> None:
        print(f"  {title}: {visited:,} of {known:,} states", file=sys.stderr)

    return report


def _print(model: RegisteredModel, report: CaseReport[Any], *, with_trace: bool) -> None:
    verdict = "ok    " if report.is_passed else "FAILED"
    print(f"{verdict} {model.name} {report}", flush=True)
    if with_trace or not report.is_passed:
        for found in report.result.counterexamples.values():
            print(found, flush=True)


if __name__ == "__main__":
    sys.exit(main())
