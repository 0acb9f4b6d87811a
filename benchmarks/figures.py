"""The figures that the documentation shows, all from one run.

``python -m benchmarks.figures build/bench/results.json`` publishes a run. It is kept in figures.json beside this file;
from it come the plot of the README, docs/pictures/speed.svg, and the tables in benchmarks/README.md, between the two
comments that name this command. Without an argument both are made again from the run that is kept.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.results import write_whole
from benchmarks.units import digits, written
from docs.pictures.svg import Canvas

HERE = Path(__file__).parent
RUN = HERE / "figures.json"
PAGE = HERE / "README.md"
PICTURE = HERE.parent / "docs" / "pictures" / "speed.svg"
BEGIN = "<!-- from here on: python -m benchmarks.figures -->"
END = "<!-- up to here: python -m benchmarks.figures -->"
PLOTTED = "bytes-1p1c"

Run = dict[str, Any]


def row_of(run: Run, name: str) -> Run:
    """Return the row of that name; of its placements the first, which is pinned."""
    return next(row for row in run["rows"] if row["row"] == name)


def measured(row: Run) -> list[Run]:
    """Return the entries that have a figure."""
    return [entry for entry in row["entries"] if entry["median"] is not None]


def machine_of(run: Run) -> str:
    machine = run["machine"]
    return f"{machine['cpu']}, {machine['cores']} cores, {machine['kernel']}, {machine['python']}"


def plot(run: Run) -> str:
    """Return the README's plot: one row of the benchmark as bars, on a scale that begins at 0."""
    row = row_of(run, PLOTTED)
    entries = sorted(measured(row), key=lambda entry: -entry["median"])
    left, right, top, step = 210, 770, 92, 30
    canvas = Canvas(900, top + step * len(entries) + 66, f"{row['title']}: million items a second")
    scale = (right - left) / max(max(entry["values"]) for entry in entries)
    canvas.write(28, 40, "64-byte items from one process to another, one a call", size=17, style="bold")
    canvas.write(
        28,
        64,
        f"million items a second, more is better; bar: median of {run['rounds']} rounds, line: least and most",
        "faint",
        size=13,
    )
    for at, entry in enumerate(entries):
        y = top + step * at
        look, style = ("ours", "bold") if entry["ours"] else ("peer", "")
        canvas.write(left - 12, y + 16, entry["name"], "ours" if entry["ours"] else "ink", style=f"end {style}")
        canvas.box(left, y + 1, max(entry["median"] * scale, 1.5), step - 10, look, round=3)
        least, most = (left + value * scale for value in (min(entry["values"]), max(entry["values"])))
        middle = y + step / 2 - 4
        if most - least > 3:
            canvas.line(
                f"M{least:.1f} {middle:g} H{most:.1f} M{least:.1f} {middle - 4:g} v8 M{most:.1f} {middle - 4:g} v8",
                "ink",
                width=1.3,
            )
        end = max(most, left + entry["median"] * scale)
        canvas.write(end + 10, y + 16, digits(entry["median"] / 1e6), "ours" if entry["ours"] else "ink", style=style)
        canvas.write(end + 58, y + 16, entry["note"] or "", "faint", size=12)
    foot = top + step * len(entries) + 28
    canvas.write(28, foot, run["command"], "faint", size=12, style="mono")
    canvas.write(28, foot + 19, f"{machine_of(run)}, commit {run['commit']}", "faint", size=12)
    return canvas.text()


def tables(run: Run) -> str:
    """Return the tables of benchmarks/README.md."""
    parts = [
        f"One run of `{run['command']}` on {run['started'][:10]}, at commit {run['commit']}: {machine_of(run)}.",
        f"The machine's load before it began was {run['machine']['load_before']:.1f}.",
        "Do not trust a figure with a wide spread.",
        "",
        "Million items of 64 bytes a second between processes: median (least .. most).",
        "In `bytes` rows a call carries one item, in `batch` rows 256.",
        "",
        *across(run, ["bytes-1p1c", "bytes-2p2c", "bytes-4p4c", "batch-1p1c", "batch-2p2c", "batch-4p4c"]),
        "",
        "The five kinds beside each other, from one process to another, all of them without a loss: the same unit.",
        "",
        *across(run, ["family-1", "family-256"]),
        "",
        "Every goal and what became of it; a ratio is the median of the rounds' own ratios.",
        "",
        "| row | ours | goal | ratio | least .. most | |",
        "|---|---|---|---|---|---|",
    ]
    for row in run["rows"]:
        for goal in row["goals"]:
            ours = next(
                (entry for entry in measured(row) if goal["goal"].startswith(entry["name"] + ":")), measured(row)[0]
            )
            reached = {True: "reached", False: "missed", None: "not judged"}[goal["reached"]]
            ratio = "" if goal["ratio"] is None else digits(goal["ratio"])
            extent = "" if goal["ratio"] is None else f"{digits(goal['least'])} .. {digits(goal['most'])}"
            figure = written(ours["median"], row["unit"])
            parts.append(f"| `{row['row']}` | {figure} | {goal['goal']} | {ratio} | {extent} | {reached} |")
    return "\n".join(parts)


def across(run: Run, names: list[str]) -> list[str]:
    """Return a table with a column for each of these rows and a line for each contender."""
    rows = [row_of(run, name) for name in names]
    contenders = dict.fromkeys(entry["name"] for row in rows for entry in measured(row))
    lines = [f"| | {' | '.join(f'`{name}`' for name in names)} |", "|---" * (len(names) + 1) + "|"]
    for name in contenders:
        cells = [cell(next((entry for entry in measured(row) if entry["name"] == name), None)) for row in rows]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def cell(entry: Run | None) -> str:
    if entry is None:
        return ""
    least, most = (digits(value / 1e6) for value in (min(entry["values"]), max(entry["values"])))
    return f"{digits(entry['median'] / 1e6)} ({least} .. {most})"


def page(run: Run) -> str:
    """Return benchmarks/README.md with the tables of this run."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{tables(run)}\n{END}{after}"


def main(arguments: list[str]) -> None:
    run = json.loads(Path(arguments[0] if arguments else RUN).read_text(encoding="utf-8"))
    write_whole(RUN, run)
    PICTURE.write_text(plot(run), encoding="utf-8")
    PAGE.write_text(page(run), encoding="utf-8")
    print(f"{RUN.name}, {PICTURE.name} and {PAGE.name} are of the run at commit {run['commit']}")


if __name__ == "__main__":
    main(sys.argv[1:])
