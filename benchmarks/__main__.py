"""The command: ``python -m benchmarks``."""

import signal
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import machine, plot, results, tables
from benchmarks.case import Case, Contender, Plan
from benchmarks.isolation import workplace
from benchmarks.rounds import WARM_UP, Measured, Rounds
from benchmarks.rows import all_cases, chosen

EXAMPLES = """\b
Examples:
  python -m benchmarks --quick                   everything, in less than two minutes
  python -m benchmarks                           everything, with five rounds
  python -m benchmarks --only bytes              one family of rows
  python -m benchmarks --only bytes-1p1c --only round-trip
  python -m benchmarks --quick --no-peers        ours alone, to compare two commits
  python -m benchmarks --list                    the names of the rows

\b
Exit code:
  0  everything of ours was measured, and every item was accounted for
  1  ours is missing, failed, or lost, doubled or reordered an item
  2  the command line is wrong
A goal that was not reached is reported, and is not an error.
"""


@click.command(epilog=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--quick", is_flag=True, help="Three short rounds, each worker on its core: less than two minutes in all."
)
@click.option("--only", multiple=True, metavar="ROW", help="Only this row or family of rows; may be repeated.")
@click.option("--peers/--no-peers", default=True, show_default=True, help="Measure the peers too.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("build/bench"),
    show_default=True,
    help="Where results.json and results.png go.",
)
@click.option("--rounds", type=click.IntRange(min=1), help="Rounds; 5, or 3 with --quick.")
@click.option("--items", type=click.IntRange(min=1), help="Items a run, instead of as many as fit.")
@click.option("--plot/--no-plot", "draw", default=True, show_default=True, help="Draw results.png.")
@click.option("--list", "list_rows", is_flag=True, help="Name the rows and stop.")
def main(
    *,
    quick: bool,
    only: tuple[str, ...],
    peers: bool,
    out: Path,
    rounds: int | None,
    items: int | None,
    draw: bool,
    list_rows: bool,
) -> None:
    """Measure queueduct beside its peers, in one run, with every item accounted for."""
    console = Console()
    plan = Plan(
        quick=quick,
        peers=peers,
        rounds=rounds or (3 if quick else 5),
        seconds=0.12 if quick else 0.4,
        timeout=8.0 if quick else 20.0,
        items=items,
    )
    cases = chosen(all_cases(plan), only)
    if list_rows:
        for name in dict.fromkeys(case.name for case in cases):
            click.echo(name)
        return
    if not cases:
        raise click.BadParameter(f"no row is named {', '.join(only)}; see --list", param_hint="--only")
    about: dict[str, Any] = {
        "machine": machine.machine(),
        "commit": machine.commit(),
        "command": machine.command(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # tidy up first
    tables.show_about(console, about)
    began = time.monotonic()
    measured = measure_all(console, cases, plan)
    seconds = time.monotonic() - began
    tables.show_capacities(console, measured)
    tables.show_goals(console, measured)
    results.write_whole(out / "results.json", results.as_json(measured, plan, about, seconds))
    console.print(f"{out / 'results.json'} written after {seconds:.0f} s", highlight=False)
    if draw:
        show_plot(console, measured, about, out / "results.png")
    sys.exit(1 if any(one.ours_failed for one in measured) else 0)


def measure_all(console: Console, cases: list[Case], plan: Plan) -> list[Measured]:
    """Measure case after case under a bar that is drawn between the runs, never during one."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        auto_refresh=False,
        transient=True,
    )
    measured = []
    with workplace() as directory, bar:
        task = bar.add_task("starting", total=None)

        def announce(case: Case, contender: Contender, step: str) -> None:
            done = 0 if step == WARM_UP else 1
            bar.update(task, advance=done, description=f"{case.key} · {contender.name} · {step}")
            bar.refresh()

        runs = Rounds(plan, directory, announce)
        bar.update(task, total=sum(runs.steps(case) for case in cases))
        for case in cases:
            one = runs.measure(case)
            tables.show_case(bar.console, one)
            measured.append(one)
    return measured


def show_plot(console: Console, measured: list[Measured], about: dict[str, Any], path: Path) -> None:
    """Draw the picture, or say what it needs."""
    try:
        plot.draw(measured, about, path)
    except ImportError:
        console.print("no plot: matplotlib is not installed; it belongs to the extra 'bench'")
    else:
        console.print(f"{path} drawn", highlight=False)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
