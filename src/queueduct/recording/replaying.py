"""Replays an archive into a queue: at the speed of its times, at a multiple of it, or flat out.

An item is put at its time or at most a millisecond later: what is due within one is one batch. The recording is read
ahead by other threads, and the clock starts when its first items are there.

Exactly once: the sequence of a batch is the position of its first item, so a producer's record in the queue says what
is in: ``total`` items from the position ``sequence`` on. A repeated replay goes on behind them, or first repeats the
batch that was cut off.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from queueduct.errors import Full
from queueduct.recording.reading import Chunk, Recording
from queueduct.recording.recorder import STOPPED
from queueduct.segments.kinds import KINDS, kind_of
from queueduct.segments.names import Directory

__all__ = ["Replayed", "create_for", "replay"]

PUT_ROWS = 1 << 16
TICK_NS = 1_000_000  # what is due within it is put at once
SPIN_NS = 200_000  # before an item is due the clock is asked again and again: a sleep may end that late
POLL_SECONDS = 0.1  # between looks at `stop`
LATE_EDGES_NS = np.logspace(3, 11, 161)  # from a microsecond to 100 seconds


class Replayed(NamedTuple):
    """What a replay has done so far, or in all."""

    rows: int
    position: int | None
    """Of the last item that was put; None if there is none."""
    rounds: int
    """How often the end was reached."""
    behind: float
    """Seconds by which the last item came late: because the queue was full, if it is more than a few milliseconds."""
    late_p99: float
    """Seconds, of 99 of 100 items; 0 at the speed ``math.inf``."""
    late_max: float
    skipped: int
    """Items that an earlier replay of the same producer has put."""
    seconds: float
    ended: str
    """Why it ended; empty while it goes on."""


def create_for(
    recording: Recording, name: str, kind: str, *, item: Any = None, directory: Directory = None, **sizes: int
) -> Any:
    """Creates a queue for the items of a recording. ``item`` is needed where that does not say it, as Spark's."""
    found = recording.item if item is None else item
    if found is None:
        raise ValueError(
            f"a queue is created with the items' type, and {recording.directory} does not say it: it is not a "
            "recorder's; create the queue first, and replay without --create"
        )
    return KINDS[kind].queue_class.create(name, item=found, directory=directory, **sizes)


def replay(
    recording: str | Path | Recording,
    queue: Any,
    *,
    speed: float = 1.0,
    time_field: str | None = None,
    start: int | np.datetime64 | None = None,
    end: int | np.datetime64 | None = None,
    loop: bool = False,
    producer: str | None = None,
    stop: threading.Event | None = None,
    on_progress: Callable[[Replayed], object] | None = None,
) -> Replayed:
    """Put the items of an archive into an open queue, in the order of their positions.

    ``speed`` is 1 for that of the recorded times, 10 for ten times that, ``math.inf`` for flat out; ``time_field``
    names a field of type M8 to go by instead. ``start`` and ``end`` are positions or times; ``end`` is not replayed.
    With a ``producer`` each item is put exactly once, also if the replay is killed and repeated. ``loop`` begins anew
    at the end. Set ``stop`` to end it.
    """
    found = recording if isinstance(recording, Recording) else Recording(recording)
    if not speed > 0:
        raise ValueError(f"speed must be positive: speed={speed!r}; math.inf is flat out")
    if producer is not None and not kind_of(queue).puts_once:
        raise ValueError(
            f"a queue of kind {queue.kind!r} has no put_once, so a repeated replay would put items twice: "
            f"producer={producer!r}; leave it out"
        )
    if producer is not None and loop:
        raise ValueError("exactly once and a loop exclude each other: a loop puts each item again and again")
    is_by_time = isinstance(start, np.datetime64) or isinstance(end, np.datetime64)
    is_timed = speed != math.inf or is_by_time
    found.check(queue.item, time_field, is_timed)
    span = Span(start, end)
    replayer = Replayer(queue, speed, producer, stop or threading.Event(), on_progress)
    chunks = lambda: span.of(  # noqa: E731  # each round reads them again
        found.chunks(queue.item, time_field, is_timed=is_timed, start=span.first(replayer.done()))
    )
    return replayer.run(chunks, loop=loop)


class Span(NamedTuple):
    """What of an archive is replayed."""

    start: int | np.datetime64 | None
    end: int | np.datetime64 | None

    def first(self, done: int) -> int:
        """Returns the first position to read. What lies before ``done`` is in."""
        return max(done, self.start if isinstance(self.start, int) else 0)

    def of(self, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        for chunk in chunks:
            if isinstance(self.end, int) and chunk.positions[0] >= self.end:
                return
            wanted = np.ones(len(chunk), bool)
            if isinstance(self.end, int):
                wanted &= chunk.positions < self.end
            for bound, is_wanted in ((self.start, np.greater_equal), (self.end, np.less)):
                if isinstance(bound, np.datetime64) and chunk.times_ns is not None:
                    wanted &= is_wanted(chunk.times_ns, bound.astype("M8[ns]").astype(np.int64))
            if wanted.all():
                yield chunk
            elif wanted.any():
                yield chunk.taken(np.flatnonzero(wanted))


class Replayer:
    """One replay, of one thread."""

    def __init__(
        self,
        queue: Any,
        speed: float,
        producer: str | None,
        stop: threading.Event,
        on_progress: Callable[[Replayed], object] | None,
    ) -> None:
        self.queue = queue
        self.speed = speed
        self.producer = producer
        self.stop = stop
        self.on_progress = on_progress
        self.began = self.reported = time.monotonic()
        self.rows = self.rounds = self.skipped = 0
        self.position: int | None = None
        self.late = np.zeros(len(LATE_EDGES_NS) + 1, np.int64)
        self.late_max = self.behind = 0.0
        self.origin = 0  # the time that is replayed at `began_ns`
        self.began_ns: int | None = None

    def done(self) -> int:
        """Returns the position at which the producer's last batch begins; 0 if there is none."""
        return 0 if (info := self.record()) is None else info.sequence

    def record(self) -> Any:
        if self.producer is None:
            return None
        return next((each for each in self.queue.producers() if each.name == self.producer), None)

    def run(self, chunks: Callable[[], Iterator[Chunk]], *, loop: bool) -> Replayed:
        ended = "everything is replayed"
        while True:
            rows = self.rows
            for chunk in self.resumed(chunks()):
                if not self.play(chunk):
                    break
            if self.stop.is_set():
                ended = STOPPED
                break
            self.rounds += 1
            self.began_ns = None
            if not loop or self.rows == rows:
                break
        found = self.report(ended)
        if self.on_progress is not None:
            self.on_progress(found)
        return found

    def resumed(self, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        """Leaves out what the producer has put, or completes its last batch first."""
        info = self.record()
        if info is None:
            yield from chunks
            return
        held: list[Chunk] = []
        for chunk in chunks:
            held.append(chunk)
            if sum(map(len, held)) >= info.total:
                break
        if not held or held[0].positions[0] != info.sequence or sum(map(len, held)) < info.total:
            raise ValueError(
                f"a producer's record must be of this replay: {self.producer!r} has begun {info.total} items at "
                f"position {info.sequence}, which are not all to be replayed; give each archive and span a producer of "
                "its own"
            )
        whole = Chunk.sorted(held)
        self.skipped = info.done
        if not self.put(whole.part(0, info.total), info.done):
            return
        if info.total < len(whole):
            yield whole.part(info.total)
        yield from chunks

    def play(self, chunk: Chunk) -> bool:
        """Puts each item at its time. Returns false if it is to stop."""
        due = None if chunk.times_ns is None or self.speed == math.inf else self.due(chunk.times_ns)
        at, count = 0, len(chunk)
        next_tick = 0
        while at < count:
            stop = min(at + PUT_ROWS, count)
            if due is not None:
                if not self.wait_until(max(int(due[at]), next_tick)):
                    return False
                now = time.monotonic_ns()
                stop = min(stop, at + int(np.searchsorted(due[at:stop], now, "right")))
                next_tick = now + TICK_NS
            if not self.put(chunk.part(at, stop)):
                return False
            if due is not None:
                self.note_late(time.monotonic_ns() - due[at:stop])
            at = stop
            if self.stop.is_set():
                return False
            self.tell()
        return True

    def due(self, times_ns: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Returns when each item is due, on the monotonic clock. An item whose time goes back is due at once."""
        if self.began_ns is None:
            self.origin = self.newest = int(times_ns[0])
            self.began_ns = time.monotonic_ns()
        rising = np.maximum(np.maximum.accumulate(times_ns), self.newest)
        self.newest = int(rising[-1])
        return self.began_ns + ((rising - self.origin) / self.speed).astype(np.int64)

    def wait_until(self, due_ns: int) -> bool:
        """Waits precisely. Returns false if it is to stop."""
        while (left := due_ns - time.monotonic_ns()) > 0:
            if self.stop.is_set():
                return False
            if left > SPIN_NS:
                self.stop.wait(min((left - SPIN_NS) / 1e9, POLL_SECONDS))
                self.tell()
        return True

    def put(self, chunk: Chunk, done: int = 0) -> bool:
        """Puts all items, of which ``done`` are in, however long the queue is full, and counts each that is in.

        Returns false if it is to stop before all are in.
        """
        rows, count = self.rows - done, len(chunk)
        while True:
            if done:
                self.rows, self.position = rows + done, int(chunk.positions[done - 1])
            if done == count:
                return True
            if self.stop.is_set():
                return False
            self.tell()
            try:
                if self.producer is not None:
                    self.queue.put_once(chunk.items, self.producer, int(chunk.positions[0]), timeout=POLL_SECONDS)
                    done = count
                else:
                    done += self.queue.put_many(chunk.items[done:], timeout=POLL_SECONDS)
            except Full:
                info = self.record()
                if info is not None and info.sequence == chunk.positions[0]:
                    done = info.done

    def note_late(self, late_ns: np.ndarray[Any, Any]) -> None:
        self.late += np.bincount(np.searchsorted(LATE_EDGES_NS, late_ns), minlength=len(self.late))
        self.behind = float(late_ns[-1]) / 1e9
        self.late_max = max(self.late_max, float(late_ns.max()) / 1e9)

    def tell(self) -> None:
        if self.on_progress is not None and time.monotonic() - self.reported >= POLL_SECONDS:
            self.reported = time.monotonic()
            self.on_progress(self.report(""))

    def report(self, ended: str) -> Replayed:
        reached = np.searchsorted(np.cumsum(self.late), 0.99 * self.late.sum())
        p99 = float(LATE_EDGES_NS[min(int(reached), len(LATE_EDGES_NS) - 1)]) / 1e9 if self.late.any() else 0.0
        return Replayed(
            rows=self.rows,
            position=self.position,
            rounds=self.rounds,
            behind=self.behind,
            late_p99=min(p99, self.late_max),
            late_max=self.late_max,
            skipped=self.skipped,
            seconds=time.monotonic() - self.began,
            ended=ended,
        )
