"""The results as a picture: a panel for each topology, logarithmic bars, ours in colour."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.placement import PINNED
from benchmarks.rounds import Entry, Measured
from benchmarks.units import tick, written

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OURS = "#0b7285"
OURS_TOO = "#66b2bf"
PEER = "#c3c9ce"
INK = "#2b3137"
FAINT = "#7a828a"
COLUMNS = 3
BAR_INCHES = 0.27


def draw(measured: list[Measured], about: Mapping[str, Any], path: Path) -> None:
    """Draw every case that has figures; pinned as bars, unpinned as open circles on them."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    panels = _panels(measured)
    if not panels:
        return
    rows = [panels[at : at + COLUMNS] for at in range(0, len(panels), COLUMNS)]
    heights = [max(_bars(panel) for panel in row) * BAR_INCHES + 0.85 for row in rows]
    figure, grid = pyplot.subplots(
        len(rows),
        COLUMNS,
        figsize=(5.6 * COLUMNS, sum(heights) + 1.1),
        height_ratios=heights,
        squeeze=False,
        layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12),
    )
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    for axes_row, row in zip(grid, rows, strict=True):
        places = max(_bars(panel) for panel in row)
        for axes, panel in zip(axes_row, row, strict=False):
            _panel(axes, panel, places)
    machine = about["machine"]
    figure.suptitle("queueduct beside its peers\n", fontsize=16, fontweight="bold", color=INK, x=0.01, ha="left")
    figure.text(
        0.01,
        1 - 0.62 / figure.get_figheight(),
        f"{machine['cpu']}, {machine['cores']} cores · {machine['kernel']} · {machine['python']}"
        f" · commit {about['commit'] or 'unknown'} · {about['command']}\n"
        "bar: median of the rounds, line: least and most, open circle: not pinned,"
        " dashed: the goals",
        fontsize=9,
        color=FAINT,
        va="center",
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, facecolor="white")
    pyplot.close(figure)


def _panels(measured: list[Measured]) -> list[list[Measured]]:
    """Group the placements of a case: one panel shows them together, pinned first."""
    groups: dict[str, list[Measured]] = {}
    for one in measured:
        if any(entry.good for entry in one.entries):
            groups.setdefault(one.case.name, []).append(one)
    return [sorted(group, key=lambda one: one.case.placement != PINNED) for group in groups.values()]


def _shown(one: Measured) -> list[Entry]:
    entries = [entry for entry in one.entries if entry.good]
    return sorted(entries, key=lambda e: e.median, reverse=not one.case.higher_is_better)


def _bars(panel: list[Measured]) -> int:
    return len(_shown(panel[0]))


def _panel(axes: "Axes", panel: list[Measured], places: int) -> None:
    main, others = panel[0], panel[1:]
    entries = _shown(main)
    unit = main.case.unit
    positions = range(len(entries))
    medians = [max(entry.median, 1e-12) for entry in entries]
    ours = main.entries[0].contender.name
    colours = [_colour(entry, ours) for entry in entries]
    axes.barh(positions, medians, color=colours, height=0.68, zorder=2)
    for at, entry in enumerate(entries):
        axes.plot([min(entry.values), max(entry.values)], [at, at], color=INK, lw=1, zorder=3)
    for other in others:
        same = {entry.contender.name: entry.median for entry in other.entries if entry.good}
        points = [(same[e.contender.name], at) for at, e in enumerate(entries) if e.contender.name in same]
        if points:
            along, across = zip(*points, strict=True)
            axes.scatter(along, across, s=26, facecolor="white", edgecolor=INK, zorder=4)
    axes.set_ylim(len(entries) - places - 0.6, len(entries) - 0.4)
    _scale(axes, panel)
    _goal_lines(axes, main)
    right = axes.get_xlim()[1]
    for at, entry in enumerate(entries):
        axes.text(
            right,
            at,
            "  " + written(entry.median, unit),
            va="center",
            fontsize=8.5,
            color=OURS if entry.contender.ours else INK,
            fontweight="bold" if entry.contender.ours else "normal",
        )
    axes.set_yticks(list(positions), [entry.contender.name for entry in entries], fontsize=9)
    for label, entry in zip(axes.get_yticklabels(), entries, strict=True):
        if entry.contender.ours:
            label.set_color(OURS)
            label.set_fontweight("bold")
    better = "more is better" if main.case.higher_is_better else "less is better"
    axes.set_title(main.case.title, loc="left", fontsize=9.5, color=INK, pad=14)
    axes.text(0, 1.015, better, transform=axes.transAxes, fontsize=8, color=FAINT)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(PEER)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", colors=FAINT, labelsize=8)
    axes.grid(axis="x", color="#eceff1", zorder=0)


def _colour(entry: Entry, ours: str) -> str:
    if not entry.contender.ours:
        return PEER
    return OURS if entry.contender.name == ours else OURS_TOO


def _scale(axes: "Axes", panel: list[Measured]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    unit = panel[0].case.unit
    values = [v for one in panel for e in one.entries if e.good for v in e.values if v > 0]
    if not values:
        return
    axes.set_xscale("log")
    axes.set_xlim(min(values) / 3, max(values) * 1.6)
    axes.xaxis.set_major_locator(LogLocator(base=10, numticks=7))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: tick(value, unit)))


def _goal_lines(axes: "Axes", one: Measured) -> None:
    """Mark where ours would have to be for the strictest goal."""
    ours = next((e for e in one.entries if e.contender.ours and e.good), None)
    if ours is None:
        return
    for verdict in one.verdicts:
        if not verdict.ratio:
            continue
        if not verdict.goal.against:
            wanted = verdict.goal.wanted
        elif one.case.higher_is_better or verdict.goal.kind == "at most":
            wanted = ours.median * verdict.goal.wanted / verdict.ratio
        else:
            wanted = ours.median * verdict.ratio / verdict.goal.wanted
        least, most = axes.get_xlim()
        axes.set_xlim(min(least, wanted / 1.5), max(most, wanted * 1.3))
        axes.axvline(wanted, color=OURS, lw=1, ls=(0, (4, 3)), zorder=1)
