"""Frames of 1 MB between two processes, and what the size of a frame costs.

A frame is handed over: the producer writes its number into the first and the last word, the consumer reads both. What
else is in a frame costs everybody the same; the row `filled` shows it, there the producer copies all of it.
Beside it stands what one would do with the standard library: `multiprocessing.shared_memory` for the frames, and a
`multiprocessing.Queue` of their names; with a new segment for each frame, or with segments that a second queue
brings back.
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.shared_memory import SharedMemory
from multiprocessing.synchronize import Barrier
from typing import Any

from benchmarks.adapter import load
from benchmarks.case import Case, Contender, Goal, Plan, without_peers
from benchmarks.crew import Report, fork, now, run_together
from benchmarks.isolation import Bench, Sample, UnfaithfulError
from benchmarks.placement import placements, take_place

OURS = "queueduct"
NEW = "shared_memory + Queue of names"
AGAIN = "shared_memory + Queue of names, segments used again"
SLOTS = 8
KIB, MIB = 1 << 10, 1 << 20
FRAME = MIB
FIRST_FRAMES, MOST_FRAMES, WARM_FRAMES = 100, 200_000, 32
SMALL, LARGE = "queueduct, 1 kB", "queueduct, 8 MB"
FIRST_TURNS, MOST_TURNS = 2_000, 400_000

WORD = struct.Struct("<Q")
Frame = memoryview
Paint = Callable[[Frame, int], None]


def stamp(frame: Frame, number: int) -> None:
    WORD.pack_into(frame, 0, number)
    WORD.pack_into(frame, FRAME - WORD.size, number)


def filler() -> Paint:
    """Return what copies a whole frame."""
    source = bytes(range(256)) * (FRAME // 256)

    def fill(frame: Frame, number: int) -> None:
        frame[:FRAME] = source
        stamp(frame, number)

    return fill


def check(frame: Frame, number: int) -> None:
    found = WORD.unpack_from(frame, 0)[0], WORD.unpack_from(frame, FRAME - WORD.size)[0]
    if found != (number, number):
        raise UnfaithfulError(f"frame {number} came as {found}")


class Slots:
    """Ours."""

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self.queue = load("queueduct").SlotQueue.create(tag, SLOTS, slot_bytes=FRAME)

    def send(self, frames: Iterator[int], paint: Paint) -> None:
        loan = self.queue.loan
        for number in frames:
            with loan() as slot:
                paint(slot.view, number)

    def receive(self, frames: Iterator[int]) -> None:
        take = self.queue.take
        for number in frames:
            with take() as slot:
                check(slot.view, number)

    def close(self) -> None:
        self.queue.close()
        load("queueduct").unlink(self.tag)


class NewSegments:
    """A segment for each frame: the consumer removes it."""

    def __init__(self, tag: str) -> None:
        resource_tracker.ensure_running()  # one for both workers: they make and remove the same names
        self.tag = tag
        self.names: Any = fork.Queue(SLOTS)

    def send(self, frames: Iterator[int], paint: Paint) -> None:
        for number in frames:
            segment = SharedMemory(f"{self.tag}-{number}", create=True, size=FRAME)
            paint(segment.buf, number)
            segment.close()
            self.names.put(segment.name)

    def receive(self, frames: Iterator[int]) -> None:
        for number in frames:
            segment = SharedMemory(self.names.get())
            check(segment.buf, number)
            segment.close()
            segment.unlink()

    def close(self) -> None:
        """Nothing is left: who receives removes."""


class SegmentsAgain:
    """As many segments as ours has slots, opened once, and two queues of names."""

    def __init__(self, tag: str) -> None:
        resource_tracker.ensure_running()
        self.segments = {
            name: SharedMemory(name, create=True, size=FRAME) for name in (f"{tag}-{i}" for i in range(SLOTS))
        }
        self.full: Any = fork.Queue()
        self.empty: Any = fork.Queue()
        for name in self.segments:
            self.empty.put(name)

    def send(self, frames: Iterator[int], paint: Paint) -> None:
        for number in frames:
            name = self.empty.get()
            paint(self.segments[name].buf, number)
            self.full.put(name)

    def receive(self, frames: Iterator[int]) -> None:
        for number in frames:
            name = self.full.get()
            check(self.segments[name].buf, number)
            self.empty.put(name)

    def close(self) -> None:
        for segment in self.segments.values():
            segment.close()
            segment.unlink()


WAYS: dict[str, type[Slots] | type[NewSegments] | type[SegmentsAgain]] = {
    OURS: Slots,
    NEW: NewSegments,
    AGAIN: SegmentsAgain,
}


@dataclass(frozen=True)
class Frames:
    """One way, and whether a frame is copied or only handed over."""

    way: str
    is_filled: bool
    placement: str


def measure_frames(setting: Frames, amount: int, bench: Bench) -> Sample:
    """Send `amount` frames; the value is frames a second."""
    way = WAYS[setting.way](bench.tag)
    try:
        reports = run_together(
            {"producer": _Worker(way, setting, amount, True), "consumer": _Worker(way, setting, amount, False)}
        )
    finally:
        way.close()
    seconds = reports["consumer"].ended - min(report.started for report in reports.values())
    return Sample(amount / seconds, seconds)


@dataclass(frozen=True)
class _Worker:
    way: Slots | NewSegments | SegmentsAgain
    setting: Frames
    amount: int
    produces: bool

    def __call__(self, barrier: Barrier) -> Report:
        take_place(self.setting.placement, producing=self.produces, index=0)
        paint = filler() if self.setting.is_filled else stamp
        barrier.wait()
        self._work(0, WARM_FRAMES, paint)
        barrier.wait()
        started = now()
        self._work(WARM_FRAMES, self.amount, paint)
        return Report(started, now())

    def _work(self, first: int, count: int, paint: Paint) -> None:
        frames = iter(range(first, first + count))
        if self.produces:
            self.way.send(frames, paint)
        else:
            self.way.receive(frames)


def measure_size(slot_bytes: int, amount: int, bench: Bench) -> Sample:
    """Loan, publish, take and release `amount` times; the value is seconds a turn."""
    queueduct = load("queueduct")
    with queueduct.SlotQueue.create(bench.tag, 2, slot_bytes=slot_bytes) as queue:
        loan, take = queue.loan, queue.take
        started = now()
        for number in range(amount):
            with loan() as slot:
                WORD.pack_into(slot.view, 0, number)
            with take() as slot:
                if WORD.unpack_from(slot.view, 0)[0] != number:
                    raise UnfaithfulError(f"frame {number} is another one")
        seconds = now() - started
    queueduct.unlink(bench.tag)
    return Sample(seconds / amount, seconds)


def cases(plan: Plan) -> list[Case]:
    filled = [] if plan.quick else [_frames(plan, is_filled=True)]
    return [_frames(plan, is_filled=False), *filled, _sizes(plan)]


def _frames(plan: Plan, *, is_filled: bool) -> Case:
    placement = placements(quick=plan.quick)[0]
    contenders = [
        Contender(
            name=way,
            measure=measure_frames,
            setting=Frames(way, is_filled, placement),
            amount=plan.first(FIRST_FRAMES),
            most=plan.most(MOST_FRAMES),
            ours=way == OURS,
            capacity="a segment a frame" if way == NEW else f"{SLOTS} frames",
        )
        for way in WAYS
    ]
    return Case(
        name="frames-filled" if is_filled else "frames",
        title=f"frames of 1 MB between two processes, {'all of it copied in' if is_filled else 'handed over'}",
        unit="frames/s",
        placement=placement,
        contenders=without_peers(contenders, plan),
        goals=() if is_filled else (Goal(8.0, NEW), Goal(8.0, AGAIN)),
    )


def _sizes(plan: Plan) -> Case:
    contenders = [
        Contender(
            name=name,
            measure=measure_size,
            setting=size,
            amount=plan.first(FIRST_TURNS),
            most=plan.most(MOST_TURNS),
            ours=True,
        )
        for name, size in ((SMALL, KIB), (LARGE, 8 * MIB))
    ]
    return Case(
        name="frames-size",
        title="loan, publish, take and release of a frame, by its size",
        unit="s",
        contenders=without_peers(contenders, plan),
        goals=(Goal(1.15, SMALL, "at most", mine=LARGE),),
        higher_is_better=False,
    )
