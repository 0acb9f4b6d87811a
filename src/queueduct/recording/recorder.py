"""Records a queue into an archive: each position once, under ``kill -9`` at any instruction.

::

    queue ──take──► rows of a group ──┐                        the recorder's thread
      ▲                               ▼
      │                            columns                     a thread for them: the next group meanwhile
      │                               ▼
      │                    Parquet, sync, rename               the writer's thread
      └──────commit, or release──◄────┘

The recorder's thread notes when it took an item, so it must not wait for a disk. The names of the files are the only
state: see archive.py and files.py.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, TypeVar

from queueduct.errors import QueueReplaced
from queueduct.items.types import ItemType
from queueduct.recording.archive import Archive, Facts
from queueduct.recording.columns import POSITION, RECORDED, Part, Shape
from queueduct.recording.files import COMPRESSIONS, FileWriter
from queueduct.recording.sources import Ended, Source, source_of

__all__ = ["STOPPED", "TIME_IS_UP", "Recorded", "record"]

T = TypeVar("T")

TAKE_ROWS, TAKE_BYTES = 1 << 16, 4 << 20  # at a time
GROUP_ROWS, GROUP_BYTES = 1 << 16, 32 << 20  # of a row group: nothing is written before the first one is taken
WAITING_GROUPS = 2  # that the writer has not begun
POLL_SECONDS = 0.1  # between looks at `stop` and the clock
SETTLE_SECONDS = 0.002  # the same while a file is being completed
MERGED_PARTS = 1024
TYPICAL_BYTES = 64  # of an item that varies in length

STOPPED = "stopped"
SHUT_DOWN = "the queue was shut down, and everything in it is recorded"
ALL_DONE = "everything that was there is recorded"
ALL_ROWS = "as many items as were asked for are recorded"
TIME_IS_UP = "the time is up"


class Recorded(NamedTuple):
    """What a recorder has done so far, or in all."""

    rows: int
    """In complete files."""
    files: int
    bytes: int
    """Of these files."""
    open_rows: int
    """That were taken, and are not in a complete file yet."""
    position: int | None
    """After the last item that was recorded; None if there is none."""
    lag: int
    """Items that wait in the queue."""
    missed: int
    """Items that the queue dropped, or somebody removed, before the recorder took them."""
    skipped: int
    """Items that came again after a kill, and that the archive has already."""
    seconds: float
    reader: str | None
    """The durable reader of a log."""
    ended: str
    """Why it ended; empty while it goes on."""


def record(
    queue: Any,
    to: str | Path,
    *,
    reader: str | None = None,
    start: Literal["earliest", "latest"] | int = "earliest",
    rows_per_file: int = 1_000_000,
    bytes_per_file: int = 128 << 20,
    seconds_per_file: float = 10.0,
    compression: str = "snappy",
    strings: Literal["string", "binary"] = "string",
    position_column: str = POSITION,
    recorded_column: str | None = RECORDED,
    max_rows: int | None = None,
    seconds: float | None = None,
    available_now: bool = False,
    stop: threading.Event | None = None,
    on_progress: Callable[[Recorded], object] | None = None,
) -> Recorded:
    """Record the items of an open queue as Parquet files in the directory ``to``, each position exactly once.

    Ends when the queue is shut down and empty, after ``max_rows`` items or ``seconds``, when ``stop`` is set, or with
    ``available_now`` when everything that is there is recorded. A recorder that was killed is started again with the
    same directory: it goes on after the last complete file. A file is complete after ``rows_per_file`` items,
    ``bytes_per_file`` bytes of items, or ``seconds_per_file`` seconds from its first item on, whichever comes first.

    Of a log it reads as a durable reader, ``reader``, by default one of the directory's own; ``start`` is where a new
    one starts. Of other kinds it leases, and files are complete before producers must wait for what is on lease.
    ``on_progress`` is called after each look at the queue, at least ten times a second.
    """
    for name, value in (
        ("rows_per_file", rows_per_file),
        ("bytes_per_file", bytes_per_file),
        *((("max_rows", max_rows),) if max_rows is not None else ()),
    ):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} must be an int of at least 1: {name}={value!r}")
    for name, length in (("seconds_per_file", seconds_per_file), ("seconds", seconds)):
        if length is not None and not length > 0:
            raise ValueError(f"{name} must be positive: {name}={length!r}")
    if compression not in COMPRESSIONS:
        raise ValueError(f"compression must be one of {', '.join(COMPRESSIONS)}: compression={compression!r}")
    if queue.name is None:
        raise ValueError(
            "only a queue with a name can be recorded: one without goes with its users, and its positions with it; "
            "create it with a name"
        )
    shape = Shape(queue.item, strings=strings, position_column=position_column, recorded_column=recorded_column)
    limits = Limits(rows_per_file, bytes_per_file, seconds_per_file, max_rows, seconds, available_now)
    with Archive(Path(to)) as archive:
        found = archive.last_facts()
        if found is not None and found.queue_id != queue.segment_id.hex():
            raise QueueReplaced(
                f"an archive is one queue's: {archive.directory} has the items of {found.queue!r} of id "
                f"{found.queue_id}, and this {queue.name!r} has the id {queue.segment_id.hex()}: it was created anew, "
                "or is another one; record into a new directory"
            )
        with contextlib.closing(source_of(queue, archive, found, reader, start, seconds_per_file)) as source:
            writer = FileWriter(archive, shape, compression)
            with Recorder(queue, source, writer, limits) as recorder:
                return recorder.run(stop or threading.Event(), on_progress)


class Limits(NamedTuple):
    """When a file is complete, and when the recorder ends."""

    rows_per_file: int
    bytes_per_file: int
    seconds_per_file: float
    max_rows: int | None
    seconds: float | None
    available_now: bool


class Recorder:
    """One run. The calls are of one thread; the writer's are in a thread of its own, in their order."""

    def __init__(self, queue: Any, source: Source, writer: FileWriter, limits: Limits) -> None:
        self.queue = queue
        self.source = source
        self.writer = writer
        self.limits = limits
        self.item = ItemType.of(queue.item)
        item_bytes = TYPICAL_BYTES if self.item.dtype is None else self.item.dtype.itemsize
        self.take_rows = max(1, min(TAKE_ROWS, TAKE_BYTES // item_bytes))
        self.available = source.lag() if limits.available_now else None
        self.converter = ThreadPoolExecutor(1, "queueduct-columns")
        self.thread = ThreadPoolExecutor(1, "queueduct-recorder")
        self.writing: deque[Future[None]] = deque()
        self.completing: deque[Future[Facts]] = deque()
        self.failed: BaseException | None = None
        self.group = Group()
        self.file = OpenFile()
        self.began = self.reported = time.monotonic()
        self.taken = self.rows = self.files = 0
        self.position: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.converter.shutdown(cancel_futures=True)  # first: the writer waits for it
        self.thread.shutdown(cancel_futures=True)
        self.writer.discard()

    def run(self, stop: threading.Event, on_progress: Callable[[Recorded], object] | None) -> Recorded:
        """Records until there is a reason to end, and completes the open file."""
        ended = ""
        while not (ended := self.reason_to_end(stop)):
            try:
                part = self.source.take(self.rows_to_take(), self.patience())
            except Ended:
                ended = SHUT_DOWN
                break
            if part is not None:
                self.add(part)
            if self.is_file_complete():
                self.complete()
            self.settle(wait=False)
            if on_progress is not None and time.monotonic() - self.reported >= POLL_SECONDS:
                self.reported = time.monotonic()
                on_progress(self.report(""))
        if self.file.rows:
            self.complete()
        self.settle(wait=True)
        found = self.report(ended)
        if on_progress is not None:
            on_progress(found)
        return found

    def reason_to_end(self, stop: threading.Event) -> str:
        limits = self.limits
        if stop.is_set():
            return STOPPED
        if limits.max_rows is not None and self.taken >= limits.max_rows:
            return ALL_ROWS
        if limits.seconds is not None and time.monotonic() - self.began >= limits.seconds:
            return TIME_IS_UP
        if self.available is not None and (self.source.is_idle or 0 < self.available <= self.taken):
            return ALL_DONE
        return ""

    def rows_to_take(self) -> int:
        rows = min(self.take_rows, self.limits.rows_per_file - self.file.rows)
        return rows if self.limits.max_rows is None else min(rows, self.limits.max_rows - self.taken)

    def patience(self) -> float:
        """Returns how long to wait for an item."""
        if self.available is not None:
            return 0.0
        now = time.monotonic()
        waits = [SETTLE_SECONDS if self.completing else POLL_SECONDS]
        if self.file.rows:
            waits.append(self.file.began + self.limits.seconds_per_file - now)
        if self.limits.seconds is not None:
            waits.append(self.began + self.limits.seconds - now)
        return max(0.0, min(waits))

    def add(self, part: Part) -> None:
        """Adds a part to the open file, and writes its group if that is large enough."""
        self.taken += len(part.positions)
        self.file.add(part)
        self.group.add(part)
        if self.group.rows >= GROUP_ROWS or self.group.bytes >= GROUP_BYTES:
            self.write()

    def write(self) -> None:
        """Hands the group to the writer. Waits if that is behind: memory is finite."""
        parts = self.group.removed()
        columns = self.converter.submit(self.writer.shape.batch, parts)
        self.writing.append(self.submit(lambda: self.writer.write(columns.result())))
        while len(self.writing) > WAITING_GROUPS:
            self.writing.popleft().result()

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """Lets the writer's thread make this call. After one that failed, all later ones fail for the same reason."""

        def after_the_others() -> T:
            if self.failed is not None:
                raise self.failed
            try:
                return call()
            except BaseException as error:
                self.failed = error
                raise

        return self.thread.submit(after_the_others)

    def is_file_complete(self) -> bool:
        file, limits = self.file, self.limits
        if not file.rows:
            return False
        if file.rows >= limits.rows_per_file or file.bytes >= limits.bytes_per_file:
            return True
        if time.monotonic() - file.began >= limits.seconds_per_file:
            return True
        return not self.completing and self.source.is_pressed()

    def complete(self) -> None:
        """Lets the writer complete the file; the next part begins another one."""
        if self.group.rows:
            self.write()
        file, self.file = self.file, OpenFile()
        facts = Facts(
            queue=str(self.queue.name),
            queue_id=self.queue.segment_id.hex(),
            kind=str(self.queue.kind),
            item=self.item,
            epoch=getattr(self.queue, "epoch", 0),
            reader=None if self.source.reader is None else self.source.reader.name,
            position_column=self.writer.shape.position_column,
            recorded_column=self.writer.shape.recorded_column,
            first=file.first,
            last=file.last,
            rows=file.rows,
        )
        self.source.file_ended()
        self.completing.append(self.submit(lambda: self.writer.finish(facts, self.source.is_kept)))

    def settle(self, *, wait: bool) -> None:
        """Tells the queue which files are complete. Raises what the writer has raised."""
        while self.writing and (wait or self.writing[0].done()):
            self.writing.popleft().result()
        while self.completing and (wait or self.completing[0].done()):
            file = self.completing.popleft().result()
            self.source.settle(file)
            self.files += 1
            self.rows += file.rows
            self.position = max(self.position or 0, file.last + 1)

    def report(self, ended: str) -> Recorded:
        return Recorded(
            rows=self.rows,
            files=self.files,
            bytes=self.writer.written_bytes,
            open_rows=self.taken - self.rows,
            position=self.position,
            lag=self.source.lag(),
            missed=self.source.missed,
            skipped=self.source.skipped,
            seconds=time.monotonic() - self.began,
            reader=None if self.source.reader is None else self.source.reader.name,
            ended=ended,
        )


class OpenFile:
    """What the open file has, or will have."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.rows = self.bytes = self.first = self.last = 0

    def add(self, part: Part) -> None:
        first, last = int(part.positions.min()), int(part.positions.max())
        if self.rows == 0:
            self.began, self.first, self.last = time.monotonic(), first, last
        self.first, self.last = min(self.first, first), max(self.last, last)
        self.rows += len(part.positions)
        self.bytes += part.bytes


class Group:
    """Parts that were not handed to the writer yet. Small ones are merged: a part may have one item."""

    def __init__(self) -> None:
        self.merged: list[Part] = []
        self.small: list[Part] = []
        self.rows = self.bytes = 0

    def add(self, part: Part) -> None:
        self.small.append(part)
        self.rows += len(part.positions)
        self.bytes += part.bytes
        if len(self.small) >= MERGED_PARTS:
            self.merged.append(Part.merged(self.small))
            self.small = []

    def removed(self) -> list[Part]:
        parts = [*self.merged, *self.small]
        self.merged, self.small = [], []
        self.rows = self.bytes = 0
        return parts
