"""The subcommand ``doctor``: looks whether this machine has what queues need, and says what to do where it has not."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import click

from queueduct.cli.machine.findings import Finding, fail
from queueduct.cli.options import IN, as_json
from queueduct.cli.output import colored, echo_json, table
from queueduct.segments.names import directory_of

__all__ = ["doctor"]


@click.command(
    epilog="\b\nExamples:\n  queueduct doctor\n  queueduct doctor --json | jq '.[] | select(.state != \"ok\")'\n"
)
@click.option("--spark", "with_spark", is_flag=True, help="Look for Java and pyspark, too, and run a small Spark job.")
@IN
@as_json("Print a JSON list.")
def doctor(with_spark: bool, directory: Path | None, as_json: bool) -> None:
    """Look whether this machine has what queues need.

    Each line is ok, warn or fail, with what to do. The exit code is 1 if one is fail.
    """
    found = list(findings(directory, with_spark))
    if as_json:
        echo_json([finding._asdict() for finding in found])
    else:
        click.echo(table([(colored(each.state), each.what, each.found) for each in found], "<<<"))
        for each in found:
            if each.remedy:
                click.echo(f"\n{each.what}: {each.remedy}")
    if any(finding.state == "fail" for finding in found):
        sys.exit(1)


def findings(directory: Path | None, with_spark: bool) -> Iterator[Finding]:
    from queueduct.cli.machine import checks

    every = [checks.python, checks.build, checks.kernel, checks.processors, checks.process_files]
    yield from (found_by(check.__name__, check) for check in every)
    folder = checks.directory(directory)
    yield folder
    if folder.state != "fail":
        path = directory_of(directory)
        for look in (checks.memory, checks.unnamed_files, checks.holes, checks.locks, checks.wake_up):
            yield found_by(look.__name__, partial(look, path))
    yield found_by("container", checks.container)
    yield found_by("pyarrow", checks.pyarrow)
    if with_spark:
        from queueduct.cli.machine import spark

        yield from spark.findings()


def found_by(name: str, check: Callable[[], Finding]) -> Finding:
    """Returns what a check found; a check that itself fails is a finding, too."""
    try:
        return check()
    except Exception as error:
        return fail(name.replace("_", " "), f"{type(error).__name__}: {error}", "this check itself has failed: tell us")
