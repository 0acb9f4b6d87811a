"""The table of all queues: as many columns as the terminal has room for, the least important left out first."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from rich.console import Console, Group, RenderableType
from rich.text import Text

from queueduct.cli.live.words import STATUS_STYLES, age, bar, count, memory, shown, state_style
from queueduct.monitoring import QueueSeen, Snapshot, State, Status

__all__ = ["SORTS", "empty_state", "queue_table", "sorted_queues"]

SORTS: dict[str, tuple[str, Callable[[QueueSeen], object]]] = {
    "n": ("name", lambda queue: queue.name),
    "i": ("in/s", lambda queue: -queue.rates.items_in),
    "o": ("out/s", lambda queue: -queue.rates.items_out),
    "d": ("depth", lambda queue: -queue.depth),
    "f": ("fill", lambda queue: -(queue.fill or 0)),
    "m": ("memory", lambda queue: -queue.resident_bytes),
    "l": ("lag", lambda queue: -(most_lag(queue) if queue.readers else queue.depth)),
    "w": ("worst", lambda queue: (-severity(queue), queue.name)),
}
BAR_CELLS = 8
ERRORS_LIMIT = 3
SEVERITIES = list(Status)


class Column(NamedTuple):
    title: str
    width: int
    """At least; names take what they need."""
    draw: Callable[[QueueSeen, bool], Text]
    keep: int
    """Columns with a higher number are left out first."""
    is_right: bool = True


def severity(queue: QueueSeen) -> int:
    """How much a person should look at a queue: at those that cannot be read first, then by their worst reader."""
    if queue.error is not None:
        return len(SEVERITIES)
    return -1 if queue.worst is None else SEVERITIES.index(queue.worst)


def most_lag(queue: QueueSeen) -> int:
    """A dropped reader gets nothing more: how far behind it fell says nothing any more."""
    return max((reader.lag for reader in queue.readers if reader.status is not Status.DROPPED), default=0)


def sorted_queues(snapshot: Snapshot, sort: str) -> list[QueueSeen]:
    key = SORTS[sort][1]
    return sorted(snapshot.queues, key=lambda queue: (key(queue), queue.name))


def readers_text(queue: QueueSeen, is_wide: bool) -> Text:
    """How many readers, and how the worst of them does; of other kinds how long the oldest item has waited."""
    if queue.state is not State.OPEN and not is_wide:  # there may be no room for the column of states
        return Text(str(queue.state), style=state_style(queue))
    if queue.worst is None:
        waiting = queue.oldest_seconds
        return Text(f"oldest {age(waiting, is_longer=queue.is_oldest_longer)}" if waiting > 0 else "", style="dim")
    text = Text(f"{len(queue.readers)} ")
    text.append("…" if queue.worst is Status.UNKNOWN else str(queue.worst), style=STATUS_STYLES[queue.worst])
    lag = most_lag(queue)
    if lag:
        text.append(f" -{count(lag)}")
        if is_wide:
            text.append(f" {age(queue.oldest_seconds, is_longer=queue.is_oldest_longer)}", style="dim")
    return text


def people_text(queue: QueueSeen, is_wide: bool) -> Text:
    """How many take part: alive, dead, and gone within the last minute."""
    text = Text(str(queue.alive))
    if queue.dead:
        text.append(f" {queue.dead} dead", style="bold red")
    if queue.gone:
        text.append(f" {queue.gone} gone", style="yellow")
    return text


def depth_text(queue: QueueSeen, is_wide: bool) -> Text:
    text = Text(count(queue.depth).rjust(5) + " ")
    if queue.fill is None:
        return text.append("no limit".ljust(BAR_CELLS), style="dim")
    is_calm = queue.kind == "overwriting" or queue.fill <= 0.7  # an overwriting queue is full by design
    style = "cyan" if is_calm else "yellow" if queue.fill <= 0.9 else "red"
    return text.append(bar(queue.fill, BAR_CELLS), style=f"{style} on grey23")


def plain(words: Callable[[QueueSeen], str]) -> Callable[[QueueSeen, bool], Text]:
    return lambda queue, is_wide: Text(words(queue))


def recovered_text(queue: QueueSeen, is_wide: bool) -> Text:
    recovered, lost = sum(queue.recoveries.values()), sum(queue.losses.values())
    text = Text(count(recovered), style="" if recovered else "dim")
    text.append(" / ", style="dim")
    return text.append(count(lost), style="yellow" if lost else "dim")


COLUMNS = (
    Column("queue", 5, lambda queue, is_wide: Text(shown(queue.name), style="bold"), 0, is_right=False),
    Column("kind", 11, plain(lambda queue: queue.kind), 6, is_right=False),
    Column("depth", 6 + BAR_CELLS, depth_text, 1, is_right=False),
    Column("in/s", 5, plain(lambda queue: count(queue.rates.items_in)), 0),
    Column("out/s", 5, plain(lambda queue: count(queue.rates.items_out)), 0),
    Column("MB/s", 5, plain(lambda queue: f"{queue.rates.bytes_in / 1e6:.1f}"), 5),
    Column("memory", 7, plain(lambda queue: memory(queue.resident_bytes)), 4),
    Column("readers", 16, readers_text, 1, is_right=False),
    Column("alive", 9, people_text, 2, is_right=False),
    Column("recovered/lost", 14, recovered_text, 7),
    Column("waits/s", 7, plain(lambda queue: count(queue.rates.waits_for_room + queue.rates.waits_for_items)), 8),
    Column("state", 9, lambda queue, is_wide: Text(str(queue.state), style=state_style(queue)), 3, is_right=False),
)


def chosen(columns: tuple[Column, ...], names: int, gap: int, width: int) -> list[Column]:
    """Leaves out columns until the rest has room, names in full."""
    kept = list(columns)
    while len(kept) > 4 and names + sum(each.width + gap for each in kept[1:]) > width:
        kept.remove(max(kept[1:], key=lambda each: each.keep))
    return kept


def queue_table(
    snapshot: Snapshot, console: Console, *, sort: str = "n", selected: str | None = None, lines: int | None = None
) -> RenderableType:
    """Draws the table, and why queues cannot be read; in so many lines only the rows around the selected queue."""
    queues = sorted_queues(snapshot, sort)
    if not queues:
        return empty_state(snapshot)
    longest = min(max(len(queue.name) for queue in queues) + 2, max(20, console.width // 3))
    gap = 1 if console.width < 100 else 2
    columns = chosen(COLUMNS, longest, gap, console.width)
    spare = console.width - longest - sum(each.width + gap for each in columns[1:])
    is_wide = spare >= 10 and len(columns) == len(COLUMNS)
    faulty = [queue for queue in queues if queue.error is not None][:ERRORS_LIMIT]
    errors = [Text(shown(f"{queue.name}: {queue.error}"), style="red") for queue in faulty]
    first, rows = 0, None
    if lines is not None:
        rows = max(1, lines - 1 - sum(-(-error.cell_len // console.width) for error in errors))
    if rows is not None and len(queues) > rows:
        at = next((number for number, queue in enumerate(queues) if queue.name == selected), 0)
        first = min(max(0, at - rows // 2), len(queues) - rows)
    visible = queues[first : first + rows] if rows is not None else queues
    rows_drawn = [[column.draw(queue, is_wide) for column in columns] for queue in visible]
    for queue, cells in zip(visible, rows_drawn, strict=True):
        if selected is not None:
            cells[0] = Text("▸ " if queue.name == selected else "  ", style="bold cyan") + cells[0]
        cells[0].truncate(longest, overflow="ellipsis")
    drawn = aligned(columns, rows_drawn, gap)
    for queue, line in zip(visible, drawn[1:], strict=True):
        if queue.name == selected and console.no_color:
            line.stylize("reverse")
    return Group(*drawn, *errors)


def aligned(columns: list[Column], rows: list[list[Text]], gap: int) -> list[Text]:
    """Returns the lines of a table with its head. rich's own Table takes five times as long, twice a second."""
    heads = [Text(column.title, style="bold dim") for column in columns]
    table = [heads, *rows]
    widths = [max(row[at].cell_len for row in table) for at in range(len(columns))]
    lines = []
    for row in table:
        line = Text(no_wrap=True, overflow="ellipsis", end="\n")
        for at, (column, cell) in enumerate(zip(columns, row, strict=True)):
            spaces = " " * (widths[at] - cell.cell_len)
            if column.is_right:
                line.append(spaces)
            line.append_text(cell)
            if at + 1 < len(columns):
                line.append(" " * gap if column.is_right else spaces + " " * gap)
        lines.append(line)
    return lines


def empty_state(snapshot: Snapshot) -> RenderableType:
    """What a person sees who has no queue yet: how to make one."""
    if snapshot.error is not None:
        return Text(f"the directory cannot be read: {snapshot.error}", style="bold red")
    return Text.assemble(
        f"No queues in {snapshot.directory} yet. Make one, and it appears here:\n\n",
        ("  python -c \"import queueduct; queueduct.BoundedQueue.create('jobs', 1024).put(b'hello')\"\n\n", "cyan"),
        "For another directory: --directory, or QUEUEDUCT_DIR.",
    )
