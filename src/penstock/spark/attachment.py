"""A query's hold on its queue: the durable reader, which keeps every item from the last committed position on.

A query whose reader has no name of its own gets one that its checkpoint keeps. Until the checkpoint has it, that is
until the first batch is planned, an ephemeral reader does the holding: if the query dies before, nothing stays behind.
"""

from __future__ import annotations

import secrets
import time
from typing import Any

from penstock import EventQueue, ReaderInUse
from penstock.spark.address import Address
from penstock.spark.options import SourceOptions, Start
from penstock.spark.spans import check_retained

__all__ = ["Attachment"]

BUSY_SECONDS = 10.0  # that the process of a killed query may take to end and let go of its reader
CHECK_SECONDS = 1.0


class Attachment:
    """Lives in the one process that plans a query."""

    def __init__(self, address: Address, options: SourceOptions) -> None:
        self.address = address
        self.options = options
        self.queue: EventQueue = address.open()
        self.reader_name = options.reader or ""
        self.durable: Any = None
        self.ephemeral: Any = None
        self.checked = time.monotonic()

    @property
    def end(self) -> int:
        return self.queue.end

    def begin(self) -> tuple[int, str]:
        """Where a query without a checkpoint starts, and its reader's name; from here on nothing is freed."""
        starting = self.options.starting
        if self.options.reader is not None and starting is None:
            self.durable = self.subscribe(self.options.reader, "earliest")
            return int(self.durable.committed), self.options.reader
        self.ephemeral = self.queue.subscribe(start=self.checked_start(starting))
        position = int(self.ephemeral.position)
        if self.options.reader is not None:  # told where to start: the reader's old place is given up
            self.subscribe(self.options.reader, position).close()
            self.queue.unsubscribe(self.options.reader)
        self.reader_name = self.options.reader or f"spark-{secrets.token_hex(6)}"
        return position, self.reader_name

    def checked_start(self, starting: Start | None) -> Start:
        if not isinstance(starting, int):
            return starting or "earliest"
        earliest, end = self.queue.earliest, self.queue.end
        if starting > end:
            raise ValueError(f"startingOffsets must not be beyond the queue's end: {starting}, end={end}")
        return check_retained(self.address, starting, end, earliest, may_skip=not self.options.fail_on_data_loss)

    def hold(self, reader: str, position: int) -> int:
        """Make sure that the durable reader is ours; the earliest position that it can still give."""
        if self.durable is None:
            start = max(position, self.queue.earliest)
            self.durable = self.subscribe(reader, start)
            self.reader_name = reader
            if self.ephemeral is not None:
                self.ephemeral.close()
                self.ephemeral = None
        return self.queue.earliest

    def settle(self, reader: str, position: int) -> None:
        """Everything before the position is done with."""
        self.reader_name = reader
        if self.ephemeral is None:  # else no batch has been planned yet
            self.commit(reader, position)

    def commit(self, reader: str, position: int) -> None:
        self.hold(reader, position)
        if position > self.durable.committed:
            self.durable.commit(position)

    def subscribe(self, name: str, start: Start) -> Any:
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                return self.queue.subscribe(name, start=start)
            except ReaderInUse as error:
                if time.monotonic() > deadline:
                    raise ReaderInUse(
                        f"the reader {name!r} of the queue {self.address.name!r} is held by another query or process; "
                        "stop that one, or give this query a name of its own with the option reader"
                    ) from error
                time.sleep(0.1)

    def rows_of_bytes(self, size: int) -> int:
        """About how many items have that many bytes together; at least one."""
        item = self.queue.item
        length = getattr(item, "itemsize", 0) or self.mean_length()
        return max(1, int(size // max(1, length)))

    def mean_length(self) -> float:
        """Of the items that were put last."""
        end = self.queue.end
        sample = self.queue.read(max(self.queue.earliest, end - 100), end)
        return sum(map(len, sample)) / max(1, len(sample))

    def check_still_there(self) -> None:
        """While nothing comes: does the name still lead to this queue? Nobody puts into one that has lost its name."""
        if time.monotonic() - self.checked > CHECK_SECONDS:
            self.address.open().close()
            self.checked = time.monotonic()

    def close(self) -> None:
        for held in (self.durable, self.ephemeral, self.queue):
            if held is not None:
                held.close()
