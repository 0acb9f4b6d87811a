"""A query's hold on its queue: the durable reader, which keeps every item from the last committed position on.

A query whose reader has no name of its own gets one that its checkpoint keeps. Until the checkpoint has it, that is
until the first batch is planned, an ephemeral reader does the holding: if the query dies before, nothing stays behind.

A query is known by the token that it began with. Whoever begins may be a new query, or an old one that Spark asks for
its start once more: only the first batch tells, by its token.
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

    def __init__(self, address: Address, options: SourceOptions, queue: EventQueue | None = None) -> None:
        self.address = address
        self.options = options
        self.queue: EventQueue = address.open() if queue is None else queue
        self.token = secrets.token_hex(6)
        self.durable: Any = None
        self.ephemeral: Any = None
        self.checked = time.monotonic()

    @property
    def end(self) -> int:
        return self.queue.end

    @property
    def read_address(self) -> Address:
        """Where tasks read."""
        return self.address

    @property
    def target(self) -> int:
        """Where what is there now ends."""
        return self.queue.end

    def refill(self, stop: int | None) -> None:
        """See to it that what there is can be read, as far as position ``stop`` if there is one: here it can."""

    def report(self) -> dict[str, int]:
        """For the query's progress: where the queue ends."""
        return {"position": self.queue.end}

    def begin(self) -> tuple[int, str, str]:
        """Where a query without a checkpoint starts, its reader's name and its token; nothing is freed from here on."""
        name, starting = self.options.reader, self.options.starting
        if name is not None and starting is None:
            self.durable = self.subscribe(name, "earliest")
            return int(self.durable.committed), name, self.token
        self.ephemeral = self.queue.subscribe(start=self.checked_start(starting))
        return int(self.ephemeral.position), name or f"spark-{self.token}", self.token

    def checked_start(self, starting: Start | None) -> Start:
        if not isinstance(starting, int):
            return starting or "earliest"
        earliest, end = self.queue.earliest, self.queue.end
        if starting > end:
            raise ValueError(f"startingOffsets must not be beyond the queue's end: {starting}, end={end}")
        return check_retained(self.address, starting, end, earliest, may_skip=not self.options.fail_on_data_loss)

    def hold(self, reader: str, token: str, position: int) -> int:
        """Make sure that the durable reader is ours; the earliest position that it can still give."""
        if self.durable is None:
            if token == self.token:
                self.forget(reader)  # a new query that was told where to start: the reader's old place is given up
            self.durable = self.subscribe(reader, max(position, self.queue.earliest))
            if self.ephemeral is not None:
                self.ephemeral.close()
                self.ephemeral = None
        return self.queue.earliest

    def forget(self, reader: str) -> None:
        if any(known.name == reader for known in self.queue.readers()):
            self.subscribe(reader, "earliest").close()  # waits until nobody holds it
            self.queue.unsubscribe(reader)

    def settle(self, reader: str, token: str, position: int) -> None:
        """Everything before the position is done with."""
        if self.durable is None and token == self.token:
            return  # no batch has been planned yet
        self.hold(reader, token, position)
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
