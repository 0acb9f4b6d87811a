"""The view of one queue: rates and their last minutes, readers, participants, recoveries and losses, Spark queries."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from queueduct.cli.live.words import STATUS_STYLES, age, bar, count, memory, shown, state_style
from queueduct.monitoring import Detail, ParticipantSeen, QueueSeen

__all__ = ["queue_view"]

STEPS = "▁▂▃▄▅▆▇█"
STATE_STYLES = {"alive": "green", "dead": "bold red", "gone": "yellow", "left": "dim"}
PIPELINE_STYLES = {"running": "green", "ended": "dim", "failed": "bold red", "gone": "bold red"}


def queue_view(seen: QueueSeen, detail: Detail | None, console: Console, rows: int) -> RenderableType:
    """Draws one queue in at most about ``rows`` lines: long tables say how many more there are."""
    parts: list[RenderableType] = [heading(seen)]
    if seen.error is not None:
        parts.append(Text(shown(seen.error), style="bold red"))
    parts.append(figures(seen, detail, console))
    room = max(3, (rows - 14) // 2)
    if seen.readers:
        parts += [title("readers"), readers(seen, room)]
    parts += [title("participants"), participants(seen.participants, console, room)]
    if detail is not None and detail.producers:
        parts += [title("producers of put_once"), producers(detail, room)]
    if seen.pipelines:
        parts += [title("Spark queries"), pipelines(seen)]
    parts.append(counted("recoveries", seen.recoveries.items()))
    if seen.losses:
        parts.append(counted("losses", seen.losses.items()))
    return Group(*parts)


def heading(seen: QueueSeen) -> Text:
    made = f", made {seen.created:%Y-%m-%d %H:%M:%S} UTC by process {seen.creator}" if seen.created else ""
    text = Text.assemble((shown(seen.name), "bold"), f"  {seen.kind} of {shown(seen.item)}{made}  ")
    return text.append(str(seen.state), style=state_style(seen) or "green")


def title(words: str) -> Text:
    return Text(f"\n{words}", style="bold dim")


def grid() -> Table:
    return Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")


def figures(seen: QueueSeen, detail: Detail | None, console: Console) -> Table:
    """The numbers of the table, with the course of the rates."""
    table = grid()
    for _ in range(3):
        table.add_column(no_wrap=True)
    width = max(10, min(60, console.width - 40))
    history = detail.history if detail is not None else None
    rates = seen.rates
    mega = f"{rates.bytes_in / 1e6:.1f} MB/s", f"{rates.bytes_out / 1e6:.1f} MB/s"
    ins, outs = (history.items_in, history.items_out) if history else ([], [])
    table.add_row("in", f"{count(rates.items_in)}/s, {mega[0]}", Text(sparkline(ins, width), style="cyan"))
    table.add_row("out", f"{count(rates.items_out)}/s, {mega[1]}", Text(sparkline(outs, width), style="magenta"))
    fill = "" if seen.fill is None else f"{seen.fill:.0%} full"
    depth = Text(bar(seen.fill, min(20, width)), style="cyan on grey23") if seen.fill is not None else Text("")
    leased = f", {seen.leased:,} on lease" if seen.leased else ""
    table.add_row("depth", f"{seen.depth:,}{leased}", depth.append(f" {fill}", style="default on default"))
    if seen.oldest_seconds:
        table.add_row("oldest", age(seen.oldest_seconds, is_longer=seen.is_oldest_longer))
    table.add_row("memory", memory(seen.resident_bytes))
    waits = f"{count(rates.waits_for_room)}/s for room, {count(rates.waits_for_items)}/s for items"
    table.add_row("waits", waits, Text(f"{age(seen.totals.waited_seconds)} since it was made", style="dim"))
    return table


def sparkline(values: list[float], width: int) -> str:
    """The last values as blocks of eight heights."""
    last = values[-width:]
    top = max(last, default=0)
    if top <= 0:
        return ""
    return "".join(STEPS[min(7, int(8 * value / top))] if value > 0 else " " for value in last)


def readers(seen: QueueSeen, room: int) -> Table:
    table = grid()
    for name in ("reader", "status"):
        table.add_column(name, no_wrap=True, overflow="ellipsis")
    for name in ("lag", "lag in time", "out/s", "position"):
        table.add_column(name, justify="right", no_wrap=True)
    worst_first = sorted(seen.readers, key=lambda each: list(STATUS_STYLES).index(each.status), reverse=True)
    for each in worst_first[:room]:
        late = age(each.lag_seconds, is_longer=each.is_lag_longer) if each.lag else ""
        status = Text(str(each.status), style=STATUS_STYLES[each.status])
        table.add_row(
            Text(shown(each.label)), status, f"{each.lag:,}", late, count(each.items_out), f"{each.committed:,}"
        )
    return more(table, len(seen.readers) - room)


def participants(seen: tuple[ParticipantSeen, ...], console: Console, room: int) -> RenderableType:
    if not seen:
        return Text("none", style="dim")
    table = grid()
    table.add_column("process", justify="right")
    table.add_column("state")
    for name in ("in/s", "out/s", "put", "got", "waited"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("command", no_wrap=True, overflow="ellipsis", max_width=max(10, console.width - 66))
    first = sorted(seen, key=lambda each: (list(STATE_STYLES).index(each.state) in (0, 3), -each.items_in))
    for each in first[:room]:
        since = f" {age(each.left_seconds)} ago" if each.left_seconds is not None else ""
        table.add_row(
            str(each.pid),
            Text(each.state + since, style=STATE_STYLES[each.state]),
            count(each.items_in),
            count(each.items_out),
            count(each.items_put),
            count(each.items_got),
            age(each.waited_seconds),
            Text(shown(each.command or "in another container, or gone")),
        )
    return more(table, len(seen) - room)


def producers(detail: Detail, room: int) -> Table:
    table = grid()
    table.add_column("producer", no_wrap=True, overflow="ellipsis")
    for name in ("sequence", "items in"):
        table.add_column(name, justify="right")
    for each in detail.producers[:room]:
        table.add_row(Text(shown(each.name)), f"{each.sequence:,}", f"{each.done:,} of {each.total:,}")
    return more(table, len(detail.producers) - room)


def pipelines(seen: QueueSeen) -> Table:
    table = grid()
    for name in ("query", "state", "rows", "rows/s", "to go", "why it ended"):
        table.add_column(name, no_wrap=True, overflow="ellipsis")
    for each in seen.pipelines[-3:]:
        state = Text(each.state, style=PIPELINE_STYLES.get(each.state, ""))
        table.add_row(
            Text(shown(each.title)),
            state,
            f"{each.rows:,}",
            count(each.rows_per_second),
            f"{each.lag:,}",
            Text(shown(each.ended or "")),
        )
    return table


def counted(what: str, counts: Iterable[tuple[str, int]]) -> Text:
    text = Text(f"\n{what} since it was made: ", style="bold dim")
    for number, (name, value) in enumerate(counts):
        text.append(", " if number else "", style="not bold")
        text.append(f"{name} {value:,}", style="not bold yellow" if value else "not bold dim")
    return text


def more(table: Table, left_out: int) -> Table:
    if left_out > 0:
        table.add_row(Text(f"and {left_out} more", style="dim"))
    return table
