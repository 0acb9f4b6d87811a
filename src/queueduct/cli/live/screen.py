"""The live screen of ``queueduct top``: the table, one queue, the line of help, and what the keys do."""

from __future__ import annotations

import time

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from queueduct.cli.live.keys import Keys
from queueduct.cli.live.one_queue import queue_view
from queueduct.cli.live.table import SORTS, queue_table, sorted_queues
from queueduct.cli.live.words import memory, shown
from queueduct.monitoring import Monitor, Snapshot

__all__ = ["Screen"]

AROUND_TABLE = 3  # lines: the headline, and two that are empty
SECONDS_LIMITS = (0.1, 60.0)


class Screen:
    """What is shown, and how it changes with a key."""

    def __init__(self, monitor: Monitor, console: Console, seconds: float, sort: str) -> None:
        self.monitor = monitor
        self.console = console
        self.seconds = seconds
        self.sort = sort
        self.selected: str | None = None
        self.is_open = False
        """True if the view of the selected queue is shown."""
        self.has_help = False
        self.snapshot: Snapshot = monitor.look()

    def run(self) -> None:
        """Shows the screen until ``q``. Signals end it by an exception."""
        with (
            Keys() as keys,
            Live(console=self.console, screen=True, auto_refresh=False, vertical_overflow="crop") as live,
        ):
            next_look = time.monotonic()
            while True:
                live.update(self.draw(), refresh=True)
                key = keys.wait(next_look - time.monotonic())
                if key is not None:
                    if not self.press(key):
                        return
                    continue
                self.snapshot = self.monitor.look()
                next_look = max(next_look + self.seconds, time.monotonic())

    def press(self, key: str) -> bool:
        """Does what a key asks for. Returns false if it asks for the end."""
        if key == "q":
            return False
        names = [queue.name for queue in sorted_queues(self.snapshot, self.sort)]
        if key in ("enter", "right") and names:
            self.selected = self.selected if self.selected in names else names[0]
            self.is_open = True
        elif key in ("escape", "left", "backspace"):
            self.is_open = False
        elif (step := {"up": -1, "k": -1, "down": 1, "j": 1, "page up": -10, "page down": 10}.get(key)) and names:
            at = names.index(self.selected) + step if self.selected in names else 0
            self.selected = names[min(max(at, 0), len(names) - 1)]
        elif key in ("home", "end") and names:
            self.selected = names[0 if key == "home" else -1]
        elif key in ("+", "-"):
            self.seconds = min(max(self.seconds * (0.5 if key == "+" else 2.0), SECONDS_LIMITS[0]), SECONDS_LIMITS[1])
        elif key in ("?", "h"):
            self.has_help = not self.has_help
        elif key in SORTS:
            self.sort = key
        return True

    def draw(self) -> RenderableType:
        rows = self.console.height
        seen = self.snapshot.queue(self.selected) if self.is_open and self.selected is not None else None
        if self.is_open and seen is None:
            gone = Text(
                f"{shown(self.selected or '')} is gone: its name was removed. Esc goes back to the table.",
                style="yellow",
            )
            return Group(self.headline(), Text(), gone)
        if seen is not None:
            view = queue_view(seen, self.monitor.detail(seen.name), self.console, rows)
            return Group(self.headline(), Text(), view, Text(), self.foot())
        foot = self.foot()
        lines = rows - AROUND_TABLE - len(self.console.render_lines(foot))
        table = queue_table(self.snapshot, self.console, sort=self.sort, selected=self.selected or "", lines=lines)
        return Group(self.headline(), Text(), table, Text(), foot)

    def headline(self) -> Text:
        queues = self.snapshot.queues
        total = memory(sum(queue.resident_bytes for queue in queues))
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append("queueduct top", style="bold cyan")
        text.append(f"  {time.strftime('%H:%M:%S', time.localtime(self.snapshot.at))}  ")
        text.append(
            f"{len(queues)} queue{'s' * (len(queues) != 1)}, {total}  {shown(str(self.snapshot.directory))}",
            style="dim",
        )
        return text

    def foot(self) -> Text:
        if self.has_help:
            keys = ", ".join(f"{key} {name}" for key, (name, _) in SORTS.items())
            words = f"sort by: {keys}\n↑ ↓ choose, Enter opens a queue, Esc goes back, + - quicker or slower, q quits"
            return Text(words, style="dim")
        every = f"every {self.seconds:g} s"
        if self.is_open:
            return Text(f"Esc back  ↑↓ another queue  q quit  {every}", style="dim", no_wrap=True)
        words = f"by {SORTS[self.sort][0]}  ↑↓ choose  Enter open  ? keys  q quit  {every}"
        return Text(words, style="dim", no_wrap=True)
