"""The results on the terminal: one table a case, and all goals in one table at the end."""

from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchmarks.rounds import UNFIT, Entry, Measured, Verdict
from benchmarks.units import digits, spread, written

OURS = "bold cyan"


def show_about(console: Console, about: dict[str, Any]) -> None:
    """Name the machine, the commit and the command."""
    machine = about["machine"]
    console.print(
        f"[bold]{machine['cpu']}[/], {machine['cores']} cores, {machine['memory_gib']} GiB, "
        f"{machine['kernel']}, {machine['python']}, load {machine['load_before']}",
        highlight=False,
    )
    console.print(f"commit {about['commit'] or 'unknown'} · {about['command']}", highlight=False)


def show_case(console: Console, measured: Measured) -> None:
    """Show one case, best first; those without a figure come last with their reason."""
    case = measured.case
    place = f" · {case.placement}" if case.placement else ""
    console.print(f"[bold]{case.name}{place}[/]: {case.title}", highlight=False)
    table = Table()
    table.add_column("queue", max_width=40)
    table.add_column("median", justify="right", no_wrap=True)
    table.add_column("min .. max", justify="right", no_wrap=True)
    percentiles = _percentiles(measured)
    for name in percentiles:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("ours is", justify="right", no_wrap=True)
    ours = next((e for e in measured.entries if e.contender.ours and e.good), None)
    for entry in _ordered(measured):
        cells = _cells(measured, entry, ours, percentiles)
        table.add_row(*cells, style=OURS if entry.contender.ours else "")
    console.print(table)
    for verdict in measured.verdicts:
        console.print("  ", goal_text(verdict))
    console.print()


def _percentiles(measured: Measured) -> list[str]:
    """Return the percentiles beyond the median, where a case has them."""
    names = next((entry.details() for entry in measured.entries if entry.good), {})
    return [name for name in names if name.startswith("p") and name != "p50"]


def _ordered(measured: Measured) -> list[Entry]:
    sign = -1 if measured.case.higher_is_better else 1
    return sorted(
        measured.entries,
        key=lambda entry: (not entry.good, sign * entry.median if entry.good else 0.0),
    )


def _cells(measured: Measured, entry: Entry, ours: Entry | None, percentiles: list[str]) -> list[str | Text]:
    contender = entry.contender
    unit = measured.case.unit
    if not entry.good:
        style = "dim" if entry.status == UNFIT else "yellow"
        reason = f"{entry.status}: {entry.why}" if entry.why else entry.status
        return [Text.assemble(contender.name, "\n", (reason, style))]
    details = entry.details()
    name = Text(contender.name)
    if contender.note:
        name.append(f"\n{contender.note}", style="dim")
    return [
        name,
        written(entry.median, unit),
        spread(min(entry.values), max(entry.values), entry.median, unit),
        *(written(details[each], unit) for each in percentiles),
        _ours_is(measured, entry, ours),
    ]


def _ours_is(measured: Measured, entry: Entry, ours: Entry | None) -> str:
    if ours is None or entry is ours or not entry.median or not ours.median:
        return ""
    ratio = ours.median / entry.median
    return f"{digits(ratio if measured.case.higher_is_better else 1 / ratio)}x"


def goal_text(verdict: Verdict) -> Text:
    """Say whether a goal was reached and by how much."""
    if verdict.ratio is None:
        return Text.assemble(("·", "dim"), f" goal {verdict.text}: ", ("not measured", "dim"))
    mark, word, style = ("✔", "reached", "green") if verdict.reached else ("✘", "not reached", "red")
    return Text.assemble((mark, style), f" goal {verdict.text}: ", (word, style), f", {ratio_text(verdict)}")


def ratio_text(verdict: Verdict) -> str:
    """Write the ratio with its spread over the rounds."""
    if verdict.ratio is None or verdict.least is None or verdict.most is None:
        return "-"
    sign = "x" if verdict.goal.against else ""
    return f"{digits(verdict.ratio)}{sign} ({digits(verdict.least)} .. {digits(verdict.most)})"


def show_capacities(console: Console, measured: list[Measured]) -> None:
    """Say once how each queue was given its capacity."""
    table = Table(title="capacities", title_justify="left", title_style="bold")
    table.add_column("queue", no_wrap=True)
    table.add_column("given as")
    given: dict[tuple[str, str], None] = {}
    for one in measured:
        for entry in one.entries:
            if entry.contender.capacity and not one.case.name.startswith("records"):
                given[entry.contender.name, entry.contender.capacity] = None
    for name, capacity in given:
        table.add_row(name, capacity)
    if given:
        console.print(table)


def show_goals(console: Console, measured: list[Measured]) -> None:
    """Show every goal in one table."""
    table = Table(title="goals", title_justify="left", title_style="bold")
    for name in ("row", "placement", "goal"):
        table.add_column(name)
    table.add_column("ratio (min .. max)", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for one in measured:
        for verdict in one.verdicts:
            word, style = _WORDS[verdict.reached]
            table.add_row(
                one.case.name,
                one.case.placement,
                verdict.text,
                ratio_text(verdict),
                Text(word, style=style),
            )
    console.print(table)


_WORDS: dict[bool | None, tuple[str, str]] = {
    True: ("reached", "green"),
    False: ("not reached", "red"),
    None: ("not measured", "dim"),
}
