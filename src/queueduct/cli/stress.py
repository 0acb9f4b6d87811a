"""The subcommand ``queueduct stress``."""

from __future__ import annotations

import json
import statistics
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from queueduct.cli.outcome import INTERRUPTED
from queueduct.cli.units import COUNT
from queueduct.segments.kinds import KINDS
from queueduct.verification.stress import run as stressing

__all__ = ["stress"]


def weights(context: click.Context, option: click.Parameter, given: str) -> tuple[tuple[str, int], ...]:
    """Weights, as in put=3,try_put=1. Calls without one keep theirs."""
    found = dict(stressing.MIX)
    for part in given.split(","):
        name, equals, number = part.strip().partition("=")
        if name not in found or not equals or not number.isdigit():
            raise click.BadParameter(f"{part!r} is no weight; {', '.join(f'{each}=N' for each in found)} are")
        found[name] = int(number)
    return tuple(found.items())


@click.command(
    epilog="\b\nExamples:\n"
    "  queueduct stress bounded --history runs/bounded\n"
    "  queueduct stress slots --ops 10M --kill 5 --seed 7 --history runs/slots\n"
    "  queueduct stress events --consumers 8 --threads --history runs/events\n"
    "  queueduct stress bounded --mix put=0,get=0 --capacity 2 --history runs/tight\n"
    "  queueduct stress bounded --ops 10M --no-history --json\n"
    "  queueduct stress bounded --cost\n"
)
@click.argument("kind", type=click.Choice(list(KINDS)))
@click.option("--history", type=click.Path(path_type=Path), help="The directory of the history; it must not exist.")
@click.option("--no-history", is_flag=True, help="Record nothing: how fast it is without.")
@click.option("--producers", default=4, show_default=True, help="Workers that put.")
@click.option("--consumers", default=4, show_default=True, help="Workers that get; of events, readers.")
@click.option("--ops", type=COUNT, default="1M", show_default=True, help="Puts and gets in all, as in 10M.")
@click.option("--capacity", type=COUNT, help="Of the queue, in items; by default what suits the kind.")
@click.option("--item-bytes", default=64, show_default=True, help="Of an item: a multiple of 8.")
@click.option(
    "--batch", default=64, show_default=True, help="Items of a call, at most; each has a random number of them."
)
@click.option(
    "--mix",
    callback=weights,
    default=",".join(f"{name}={weight}" for name, weight in stressing.MIX.items()),
    show_default=True,
    help="How often operations wait, and how often they only try.",
)
@click.option("--kill", default=0.0, metavar="RATE", help="Kill -9 so many workers a second; others replace them.")
@click.option("--threads", is_flag=True, help="Threads of one process, not processes.")
@click.option("--seed", default=0, show_default=True, help="Of batches, mix and kills.")
@click.option("--no-drain", is_flag=True, help="Leave in the queue what is there when all is put.")
@click.option("--cost", is_flag=True, help="On one core, with and without a history in turns: what recording costs.")
@click.option("--json", "as_json", is_flag=True, help="No live display; print the result as JSON.")
def stress(kind: str, no_history: bool, no_drain: bool, cost: bool, as_json: bool, **given: Any) -> None:
    """Run a queue of that KIND under full load, and record every operation.

    The history can be proved with `queueduct check`. Ctrl-C ends the run early; its history is complete then, too.
    """
    if sum((given["history"] is not None, no_history, cost)) != 1:
        raise click.UsageError("give --history DIR, or --no-history, or --cost")
    options = stressing.Options(kind=kind, drain=not no_drain, **given)
    console = Console(stderr=True, quiet=as_json)
    found = stressing.cost(options, console) if cost else asdict(stressing.run(options, console))
    click.echo(json.dumps(found, indent=2) if as_json else as_text(found, options.kill))
    if found.get("interrupted"):
        sys.exit(INTERRUPTED)


def as_text(found: dict[str, Any], kill: float) -> str:
    if "cost" in found:
        low, _, high = statistics.quantiles(found["costs"], n=4)
        return (
            f"{found['unrecorded_per_second'] / 1e6:.2f} million operations a second without a history, "
            f"{found['recorded_per_second'] / 1e6:.2f} with one: recording costs {found['cost']:.1%} "
            f"of the throughput on one core (median of {found['rounds']} pairs, half of them between {low:.1%} and "
            f"{high:.1%}). "
            f"By the processors' time it is {found['cpu_cost']:.1%}: "
            f"{found['unrecorded_cpu_ns']:.1f} and {found['recorded_cpu_ns']:.1f} ns an operation"
        )
    lines = [
        f"{found['operations']:,} operations in {found['seconds']:.1f} s: "
        f"{found['operations_per_second'] / 1e6:.2f} million a second",
        f"{found['put']:,} items put, {found['got']:,} got",
    ]
    if found["killed"]:
        lines.append(f"{found['killed']} workers killed -9 on the way")
    elif kill:
        lines.append(
            f"no worker was killed: it was over too soon for {kill:g} a second; more --ops, or a higher --kill"
        )
    if found["torn"]:
        lines.append(f"{found['torn']:,} items were torn")
    if found["left"]:
        lines.append(f"{found['left']:,} items are left in the queue")
    if found["interrupted"]:
        lines.append("ended early by Ctrl-C")
    if found["history"]:
        lines.append(f"{found['rows']:,} rows in {found['history']}")
        lines.append(f"prove them: queueduct check {found['history']}")
    return "\n".join(lines)
