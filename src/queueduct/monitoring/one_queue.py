"""One queue from look to look: its handle, its last samples, its readers and participants."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from queueduct.errors import CorruptSegment
from queueduct.monitoring.attendance import Attendance
from queueduct.monitoring.judging import Judge, worst
from queueduct.monitoring.pipelines import PipelineSeen
from queueduct.monitoring.ring import Ring
from queueduct.monitoring.seen import (
    Detail,
    History,
    QueueSeen,
    Rates,
    ReaderSeen,
    State,
    Status,
    Totals,
)
from queueduct.segments.kinds import KINDS
from queueduct.stats import ReaderInfo
from queueduct.watching.watch import Watch

__all__ = ["Span", "Tracked"]

RECOVERIES = ("redelivered", "tombstones", "recovered", "repairs", "epoch")
LOSSES = ("overwritten", "torn", "lost_with_consumer", "discarded", "evicted", "readers_dropped")
RATE_SECONDS = 1.0

# The columns of a sample. Those in the middle are the counters that are rated, in the order of Totals and Rates.
AT, *RATED, DEPTH, PUSHED, WIDTH = range(2 + len(Rates._fields) + 2)


class Span(NamedTuple):
    """How far back a monitor looks."""

    interval: float
    """Seconds between looks, about."""
    window: float
    """Seconds over which a reader is judged."""
    history: float
    """Seconds that are kept."""

    @property
    def samples(self) -> int:
        return max(8, round(self.history / self.interval) + 1)


class ReaderTrack:
    """The last looks at one reader."""

    def __init__(self, span: Span) -> None:
        self.judge = Judge(span.window)
        self.lags = Ring(3, span.samples)  # time, items, seconds


class Tracked:
    """A queue that a monitor has a handle of. Any call may raise what the handle raises."""

    def __init__(self, watch: Watch, span: Span) -> None:
        self.watch = watch
        self.seen: QueueSeen | None = None
        self._span = span
        self._kind = KINDS[watch.kind]
        self._item = item_text(watch.item)
        self._made = (watch.created, watch.creator, watch.segment_id.hex())
        self._samples = Ring(WIDTH, span.samples)
        self._readers: dict[str, ReaderTrack] = {}
        self._attendance = Attendance()
        self._stats: Any = None

    def look(self, at: float, pipelines: tuple[PipelineSeen, ...]) -> QueueSeen:
        """Looks at the queue. ``at`` is in seconds of the monotonic clock."""
        stats = self._stats = self.watch.stats()
        totals = Totals(*stats[-len(Totals._fields) :])
        pushed = pushed_of(stats)
        self._samples.add((at, *totals[: len(RATED)], stats.size, pushed))
        readers = tuple(self._look_at_readers(at)) if self._kind.is_log else ()
        participants = self._attendance.look(at, self.watch)
        states = [each.state for each in participants]
        oldest, is_longer = self._oldest(at, stats, pushed, readers)
        created, creator, segment = self._made
        self.seen = QueueSeen(
            name=self.watch.name,
            kind=self.watch.kind,
            state=State.SHUT_DOWN if stats.is_shut_down else State.OPEN,
            error=None,
            item=self._item,
            created=created,
            creator=creator,
            segment=segment,
            capacity=getattr(stats, "capacity", None),
            depth=stats.size,
            leased=getattr(stats, "leased", 0),
            fill=fill_of(stats),
            oldest_seconds=oldest,
            is_oldest_longer=is_longer,
            resident_bytes=stats.resident_bytes,
            rates=self._rates(),
            totals=totals,
            readers=readers,
            worst=worst(each.status for each in readers),
            participants=participants,
            alive=states.count("alive"),
            dead=states.count("dead"),
            gone=states.count("gone"),
            recoveries={name: getattr(stats, name) for name in RECOVERIES if hasattr(stats, name)},
            losses={name: getattr(stats, name) for name in LOSSES if hasattr(stats, name)},
            pipelines=pipelines,
        )
        return self.seen

    def detail(self, wall_clock_ahead: float) -> Detail | None:
        """Returns what the page of this queue shows, as of the last look; None before it."""
        if self.seen is None:
            return None
        return Detail(
            queue=self.seen,
            stats=self._stats._asdict(),
            sizes=self.watch.sizes,
            producers=tuple(self.watch.producers()) if self._kind.puts_once else (),
            history=self.history(wall_clock_ahead),
        )

    def failed(self, error: Exception, pipelines: tuple[PipelineSeen, ...]) -> QueueSeen:
        """Returns what is known of the queue when it cannot be looked at any more."""
        state = State.CORRUPT if isinstance(error, CorruptSegment) else State.UNREADABLE
        known = self.seen or unknown(self.watch.name, self.watch.kind)
        known = known._replace(state=state, error=str(error), rates=Rates(), pipelines=pipelines)
        return known._replace(participants=(), alive=0, dead=0, gone=0)

    def _rates(self) -> Rates:
        """The rates since about a second ago."""
        newest = self._samples.row(-1)
        before = self._samples.row(max(0, self._samples.last_at_most(AT, newest[AT] - RATE_SECONDS)))
        seconds = newest[AT] - before[AT]
        if seconds <= 0:
            return Rates()
        return Rates(*((newest[column] - before[column]) / seconds for column in RATED))

    def _look_at_readers(self, at: float) -> list[ReaderSeen]:
        tracks: dict[str, ReaderTrack] = {}
        seen = []
        ephemeral = 0
        for info in self.watch.readers():
            ephemeral += info.name is None
            label = f"(ephemeral {ephemeral})" if info.name is None else info.name
            track = tracks[label] = self._readers.get(label) or ReaderTrack(self._span)
            seen.append(self._reader(at, label, info, track))
        self._readers = tracks
        return seen

    def _reader(self, at: float, label: str, info: ReaderInfo, track: ReaderTrack) -> ReaderSeen:
        track.judge.look(at, info.committed, info.lag)
        seconds, is_longer = self._since_pushed(at, info.committed) if info.lag else (0.0, False)
        track.lags.add((at, info.lag, seconds))
        return ReaderSeen(
            name=info.name,
            label=label,
            committed=info.committed,
            lag=info.lag,
            lag_seconds=seconds,
            is_lag_longer=is_longer,
            items_out=track.judge.speed,
            is_attached=info.is_attached,
            status=track.judge.status(is_attached=info.is_attached, is_dropped=info.is_dropped),
        )

    def _since_pushed(self, at: float, position: float) -> tuple[float, bool]:
        """Returns how long ago the item of that position was put, by the samples before and after it.

        With true, if it was put before all samples: then it was at least so long ago.
        """
        samples = self._samples
        before = samples.last_at_most(PUSHED, position)
        if before < 0:
            return at - samples.value(0, AT), True
        if before + 1 == len(samples):
            return 0.0, False
        first, then = samples.row(before), samples.row(before + 1)
        part = (position - first[PUSHED]) / (then[PUSHED] - first[PUSHED])
        return at - (first[AT] + part * (then[AT] - first[AT])), False

    def _oldest(self, at: float, stats: Any, pushed: int, readers: tuple[ReaderSeen, ...]) -> tuple[float, bool]:
        if self._kind.is_log:
            lags = ((each.lag_seconds, each.is_lag_longer) for each in readers if each.status is not Status.DROPPED)
            return max(lags, default=(0.0, False))
        waiting = stats.size + stats.leased
        if hasattr(stats, "pop_position"):
            waiting = min(waiting, pushed - stats.pop_position)
        return self._since_pushed(at, pushed - waiting) if waiting > 0 else (0.0, False)

    def history(self, ahead: float) -> History:
        """Returns the last minutes; the wall clock is so far ahead of the monotonic one."""
        at = np.asarray(self._samples.column(AT))
        seconds = np.diff(at, prepend=np.nan)
        rates = []
        for column in RATED:
            change = np.diff(np.asarray(self._samples.column(column)), prepend=np.nan)
            rates.append(np.nan_to_num(change[1:] / seconds[1:], posinf=0.0).tolist())
        dropped = {each.label for each in self.seen.readers if each.status is Status.DROPPED} if self.seen else set()
        tracks = {label: track.lags for label, track in self._readers.items() if label not in dropped}
        lags = {label: beside(at, ring, 1) for label, ring in tracks.items()}
        lag_seconds = {label: beside(at, ring, 2) for label, ring in tracks.items()}
        depths = self._samples.column(DEPTH)[1:]
        return History._make([(at[1:] + ahead).tolist(), *rates, depths, lags, lag_seconds])


def beside(at: np.ndarray[Any, Any], lags: Ring, column: int) -> list[float | None]:
    """A reader is looked at with each sample from its first look on, so its values are the last ones."""
    values: list[float | None] = list(lags.column(column))
    return ([None] * max(0, len(at) - len(values)) + values)[1:]


def pushed_of(stats: Any) -> int:
    """Returns the position of the next item that is put, in the units in which the queue's size is counted."""
    for name in ("end", "push_position", "puts"):
        if hasattr(stats, name):
            return int(getattr(stats, name))
    return int(stats.items_put)


def fill_of(stats: Any) -> float | None:
    """Returns how full a queue is of what fills first: slots of a bounded queue, memory of one that grows."""
    if hasattr(stats, "slots"):
        return share(stats.slots - stats.free, stats.capacity)
    if hasattr(stats, "used_bytes"):
        return share(stats.used_bytes, stats.max_bytes)
    if hasattr(stats, "reserved_bytes"):
        return share(stats.reserved_bytes, stats.max_bytes)
    if hasattr(stats, "pop_position"):  # a long item takes several slots
        return share(stats.push_position - stats.pop_position, stats.capacity)
    return share(stats.size, stats.capacity)


def share(part: float, whole: float) -> float | None:
    return min(1.0, max(0.0, part / whole)) if whole else None


def unknown(name: str, kind: str) -> QueueSeen:
    """A queue of which nothing could be seen yet."""
    empty: tuple[Any, ...] = ()
    return QueueSeen(
        name=name,
        kind=kind,
        state=State.UNREADABLE,
        error=None,
        item="",
        created=None,
        creator=0,
        segment="",
        capacity=None,
        depth=0,
        leased=0,
        fill=None,
        oldest_seconds=0.0,
        is_oldest_longer=False,
        resident_bytes=0,
        rates=Rates(),
        totals=Totals(),
        readers=empty,
        worst=None,
        participants=empty,
        alive=0,
        dead=0,
        gone=0,
        recoveries={},
        losses={},
        pipelines=empty,
    )


def item_text(item: Any) -> str:
    """What an item is; a record by its size, since its fields would fill a table."""
    if isinstance(item, np.dtype) and item.names is not None:
        return f"{len(item.names)} fields, {item.itemsize:,} B"
    if isinstance(item, np.dtype) and item.subdtype is not None:
        return f"{'x'.join(map(str, item.shape))} {item.base}"
    return getattr(item, "__name__", None) or str(item)
