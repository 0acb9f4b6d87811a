"""Who takes part in a queue, from look to look: what each does a second, and who is missed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

from queueduct.monitoring.seen import ParticipantSeen
from queueduct.segments.boot import PROC, start_ticks_of
from queueduct.stats import ParticipantInfo
from queueduct.watching.watch import Watch

__all__ = ["Attendance"]

MISSED_SECONDS = 60.0  # how long those who have gone are shown
MISSED_LIMIT = 16

Key = tuple[int, int, int, int]  # pid, thread, owner of the line, number among the same


class Process(NamedTuple):
    """A process that takes part."""

    folder: Path
    start_ticks: int
    """0 if it cannot be seen, as in another container."""

    @property
    def has_ended(self) -> bool:
        try:
            state = (self.folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
        except (OSError, IndexError):
            return True
        return state in "ZX" or start_ticks_of(self.folder) != self.start_ticks


class Attendance:
    """The participants of one queue."""

    def __init__(self) -> None:
        self._at = 0.0
        self._before: dict[Key, ParticipantInfo] = {}
        self._commands: dict[Key, str | None] = {}
        self._processes: dict[int, Process] = {}
        self._last: dict[int, ParticipantSeen] = {}
        self._missed: dict[int, tuple[float, ParticipantSeen]] = {}

    def look(self, at: float, watch: Watch) -> tuple[ParticipantSeen, ...]:
        """Returns those who take part, and those who have gone lately."""
        found = keyed(watch.participants(commands=False))
        if found.keys() - self._commands.keys():  # to read a command takes long: it is done for those who are new
            found = keyed(watch.participants())
            self._commands = {key: each.command for key, each in found.items()}
        seen = [self._seen(at, key, each) for key, each in found.items()]
        self._note_missed(at, seen)
        self._before, self._at = found, at
        return (*seen, *(each._replace(left_seconds=at - since) for since, each in self._missed.values()))

    def _seen(self, at: float, key: Key, now: ParticipantInfo) -> ParticipantSeen:
        before = self._before.get(key, now)
        seconds = max(at - self._at, 1e-9)
        return ParticipantSeen(
            pid=now.pid,
            thread=now.thread,
            command=self._commands.get(key),
            state="alive" if now.alive else "dead",
            last_use=now.last_use,
            left_seconds=None,
            items_put=now.items_put,
            items_got=now.items_got,
            items_in=(now.items_put - before.items_put) / seconds,
            items_out=(now.items_got - before.items_got) / seconds,
            waits_for_room=now.waits_for_room,
            waits_for_items=now.waits_for_items,
            waited_seconds=now.waited_seconds,
        )

    def _note_missed(self, at: float, seen: list[ParticipantSeen]) -> None:
        """A process counts as missed when nothing of it is left: threads and leases come and go."""
        here = {each.pid for each in seen}
        for pid in self._last.keys() - here:
            process = self._processes.pop(pid)
            state = "gone" if process.has_ended else "left"
            self._missed[pid] = (at, self._last[pid]._replace(state=state, items_in=0.0, items_out=0.0))
        for pid in here - self._processes.keys():
            folder = PROC / str(pid)
            self._processes[pid] = Process(folder, start_ticks_of(folder))
        self._last = {each.pid: each for each in seen}
        kept = [item for item in self._missed.items() if item[0] not in here and at - item[1][0] < MISSED_SECONDS]
        self._missed = dict(kept[-MISSED_LIMIT:])


def keyed(participants: list[ParticipantInfo]) -> dict[Key, ParticipantInfo]:
    """A thread and its leases have lines of their own, which may look alike but for their order."""
    counts: Counter[tuple[int, int, int]] = Counter()
    found: dict[Key, ParticipantInfo] = {}
    for each in participants:
        same = (each.pid, each.thread, each.owners)
        found[(*same, counts[same])] = each
        counts[same] += 1
    return found
