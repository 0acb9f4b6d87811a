"""A query's subscription to its log: the durable reader that keeps every item from the last committed position on.

A durable reader stays until it is removed, so it must stand for a query that comes back:

::

    begun      an ephemeral reader     goes with the process: a query that never planned a batch leaves nothing
    planned    a durable reader        the checkpoint has the batch, and a restart will ask for its items again
    committed  the same                and a restart of the query goes on with it

Spark writes a batch to its log of offsets and then asks for its partitions. From that moment the items must stay, so
the reader becomes durable. A query that fails there, or is stopped, has never committed: Spark ends this process with
SIGTERM, and the process removes the reader. No promise is broken: a log without readers frees nothing; if other readers
have released the first batch meanwhile, a restart raises DataLost. A driver that is killed there sends no SIGTERM: it
will be restarted, and needs its items. Its reader stays; if no restart takes it within an hour, the next query of the
queue removes it. The reader's name has the time, and the position at which it stands as long as nothing is committed.

A batch is known to be committed when Spark asks for what comes after it. A query that is stopped between the two reads
its checkpoint, if the source was told where that is; otherwise it counts as one that has not committed.

A reader that the user has named, and that existed before, is the user's: it always stays.

A query is known by the token that it began with. A process that begins serves a new query, or an old one that Spark
asks for its start once more: only the first batch tells, by its token.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import secrets
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from queueduct import DataLost, EventQueue, QueueductError, ReaderInUse, TooManyReaders
from queueduct.spark.address import NEW_CHECKPOINT, Address, restart_at
from queueduct.spark.options import SourceOptions, Start
from queueduct.spark.read.ranges import check_retained

__all__ = ["LogSubscription", "when_the_query_ends"]

BUSY_SECONDS = 10.0  # that the process of a killed query may take to end and let go of its reader
CHECK_SECONDS = 1.0
RESTART_SECONDS = 3600.0  # that a query which was killed in its first batch has to be started again
CROWDED_SECONDS = 60.0  # the same when all lines for readers are taken
DRIVER_EXIT_SECONDS = 2.0  # how long a killed driver may outlive its connections
TOKEN = re.compile(r"spark-(?P<born>[0-9a-f]{8})[0-9a-f]{6}-(?P<at>\d+)")
RUNNER = "pyspark.sql.streaming.python_streaming_source_runner"  # the process of a stream reader


class LogSubscription:
    """Lives in the one process that plans a query."""

    def __init__(self, address: Address, options: SourceOptions, queue: EventQueue | None = None) -> None:
        self.address = address
        self.log_address = address
        """The address at which tasks read."""
        self.options = options
        self.queue: EventQueue = address.open() if queue is None else queue
        self.token = f"{int(time.time()):08x}{secrets.token_hex(3)}"
        self.durable: Any = None
        self.ephemeral: Any = None
        self.is_removable = False
        """True if a query has made the durable reader for itself."""
        self.has_committed = False
        self.planned: int | None = None
        """Where the last planned batch ends."""
        self.checked = time.monotonic()

    @property
    def end(self) -> int:
        """Returns the end for offsets: a checkpoint outlives a crash of the machine, so its items must, too."""
        return self.queue.durable_end()

    @property
    def target(self) -> int:
        """Returns the current end."""
        return self.all_written()

    def all_written(self) -> int:
        """Syncs the queue, if it is on a disk, and returns its end."""
        end = self.queue.end
        if self.queue.durable_end() < end:  # it was asked a moment ago
            self.queue.sync()
        return end

    def check_epoch(self, position: int, epoch: int) -> int:
        """Returns the position, if it is still the same item's; else the cut before it, if items may be skipped."""
        if epoch > self.queue.epoch:
            raise ValueError(
                f"the checkpoint is ahead of the queue {self.address.name!r}: it is of epoch {epoch}, the queue of "
                f"epoch {self.queue.epoch}; the queue's file is older than the checkpoint; {NEW_CHECKPOINT}"
            )
        valid = self.queue.valid_until(epoch)
        if position <= valid or epoch == self.queue.epoch:
            return position
        if not self.options.fail_on_data_loss:
            return valid
        raise DataLost(
            f"the machine went down since the checkpoint was written, and the queue {self.address.name!r} was cut back "
            f"to what was on its disk: the checkpoint is at position {position} of epoch {epoch}, the log was cut at "
            f"{valid}, and is in epoch {self.queue.epoch} now; positions beyond the cut belong to other items; "
            f"failOnDataLoss=false goes on from the cut{restart_at(valid)}",
            position,
            valid,
        )

    def report(self) -> dict[str, int]:
        """Returns where the queue ends, for the query's progress."""
        return {"position": self.queue.end}

    def begin(self) -> tuple[int, str, str]:
        """Returns where a query without a checkpoint starts, its reader's name and its token. Holds those items."""
        name, starting = self.options.reader, self.options.starting_offsets
        self.all_written()
        if name is not None and starting is None and self.has_reader(name):
            self.durable = self.subscribe(name, "earliest")
            return int(self.durable.committed), name, self.token
        start = self.checked_start(starting)
        self.ephemeral = self.with_reader_line(lambda: self.queue.subscribe(start=start))
        at = int(self.ephemeral.position)
        return at, name or f"spark-{self.token}-{at}", self.token

    def has_reader(self, name: str) -> bool:
        return any(known.name == name for known in self.queue.readers())

    def checked_start(self, starting: Start | None) -> Start:
        if not isinstance(starting, int):
            return self.end if starting == "latest" else "earliest"
        earliest, end = self.queue.earliest, self.queue.end
        if starting > end:
            raise ValueError(f"startingOffsets must not be beyond the queue's end: {starting}, end={end}")
        return check_retained(self.address, starting, end, earliest, may_skip=not self.options.fail_on_data_loss)

    def hold(self, reader: str, token: str, position: int) -> int:
        """Attaches the durable reader. Returns the earliest position that can still be read."""
        if self.durable is None:
            was_there = self.has_reader(reader)
            if token == self.token and self.options.starting_offsets is not None:
                self.forget(reader)  # a new query that was told where to start: the reader's old place is given up
            self.forget_abandoned(RESTART_SECONDS, but=reader)
            is_given = reader == self.options.reader
            self.is_removable = not was_there or (not is_given and TOKEN.fullmatch(reader) is not None)
            self.durable = self.subscribe(reader, max(position, self.queue.earliest))
            if self.ephemeral is not None:
                self.ephemeral.close()
                self.ephemeral = None
        return self.queue.earliest

    def forget(self, reader: str) -> None:
        if self.has_reader(reader):
            self.subscribe(reader, "earliest").close()  # waits until no process holds it
            self.queue.unsubscribe(reader)

    def settle(self, reader: str, token: str, position: int) -> None:
        """Releases everything before the position."""
        if self.durable is None and token == self.token:
            return  # no batch has been planned yet
        self.hold(reader, token, position)
        if position > self.durable.committed:
            self.durable.commit(position)

    def note_done(self, position: int, began: int) -> None:
        """Spark is done with everything before the position, in a query that began there."""
        self.has_committed = self.has_committed or position > began

    def forget_abandoned(self, seconds: float, but: str | None = None) -> bool:
        """Remove readers of queries that were killed in their first batch so long ago. Returns true if there was one.

        ``but`` is the reader of a query that comes back just now, however late.
        """
        found = False
        for known in self.queue.readers():
            name = known.name or ""
            token = TOKEN.fullmatch(name)
            if token is None or name == but or known.is_attached or known.committed != int(token["at"]):
                continue
            if time.time() - int(token["born"], 16) > seconds:
                with contextlib.suppress(QueueductError, ValueError):  # its query was restarted, or the reader is gone
                    self.queue.unsubscribe(name)
                    found = True
        return found

    def with_reader_line(self, subscribe: Callable[[], Any], but: str | None = None) -> Any:
        try:
            return subscribe()
        except TooManyReaders:
            if self.ephemeral is not None:  # the last line is our own
                self.ephemeral.close()
                self.ephemeral = None
            elif not self.forget_abandoned(CROWDED_SECONDS, but):
                raise
            return self.with_reader_line(subscribe, but)

    def subscribe(self, name: str, start: Start) -> Any:
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                return self.with_reader_line(lambda: self.queue.subscribe(name, start=start), but=name)
            except ReaderInUse as error:
                if time.monotonic() > deadline:
                    raise ReaderInUse(
                        f"the reader {name!r} of the queue {self.address.name!r} is held by another query or process; "
                        "stop that one, or give this query a name of its own with the option reader"
                    ) from error
                time.sleep(0.1)

    def rows_of_bytes(self, size: int) -> int:
        """Returns about how many items have that many bytes together; at least one."""
        item = self.queue.item
        length = getattr(item, "itemsize", 0) or self.mean_length()
        return max(1, int(size // max(1, length)))

    def mean_length(self) -> float:
        """Returns the mean length of the items that were put last."""
        end = self.queue.end
        sample = self.queue.read(max(self.queue.earliest, end - 100), end)
        return sum(map(len, sample)) / max(1, len(sample))

    def check_still_there(self) -> None:
        """Called while no items come. Raises if the name is another queue's now: no producer would find this one."""
        if time.monotonic() - self.checked > CHECK_SECONDS:
            self.address.open().close()
            self.checked = time.monotonic()

    def close(self) -> None:
        for held in (self.durable, self.ephemeral, self.queue):
            if held is not None:
                held.close()

    def leave(self) -> None:
        """Called when the query has failed or was stopped. Removes a reader that no restart will need."""
        name = self.durable.name if self.durable is not None and self.is_removable else None
        if name is None or self.has_committed:
            return
        if has_commits(self.options.checkpoint_location):
            if self.planned is not None and self.planned > self.durable.committed:
                self.durable.commit(self.planned)  # at its begin it would count as one that never committed
            return
        self.durable.close()
        with contextlib.suppress(QueueductError, ValueError):  # a restart holds it already
            self.queue.unsubscribe(name)


def has_commits(checkpoint: str | None) -> bool:
    """Returns true if a query with this checkpoint has committed a batch."""
    folder = Path(checkpoint.removeprefix("file:"), "commits") if checkpoint else None
    return folder is not None and folder.is_dir() and any(path.name.isdecimal() for path in folder.iterdir())


def when_the_query_ends(leave: Callable[[], None]) -> None:
    """Registers a call for when Spark ends the process of a stream reader. Does nothing in other processes.

    Spark closes the connection and sends SIGTERM. A process that sees the first before the second ends by itself.
    """
    program = getattr(sys.modules["__main__"], "__spec__", None)
    if program is None or program.name != RUNNER or threading.current_thread() is not threading.main_thread():
        return

    def end(number: int, frame: object) -> None:
        with contextlib.suppress(Exception):
            leave()
        os._exit(128 + number)

    signal.signal(signal.SIGTERM, end)
    sys.excepthook = quiet_when_closed
    atexit.register(leave_unless_killed, leave, os.getppid())


def leave_unless_killed(leave: Callable[[], None], driver: int) -> None:
    """Called after the connection was closed. Leaves if the driver lives on: a killed one will be restarted."""
    deadline = time.monotonic() + DRIVER_EXIT_SECONDS
    while os.getppid() == driver and time.monotonic() < deadline:
        time.sleep(0.02)
    if os.getppid() == driver:
        with contextlib.suppress(Exception):
            leave()


def quiet_when_closed(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Prints no traceback for a connection that Spark has closed."""
    if not isinstance(error, BrokenPipeError | ConnectionResetError | EOFError):
        sys.__excepthook__(kind, error, trace)
