"""What Python and the kernel bring along, behind the same calls as every other queue."""

import multiprocessing
import os
from functools import partial
from typing import Any

from benchmarks.adapter import Adapter, Receiver, Room, Sender

_fork = multiprocessing.get_context("fork")


class MultiprocessingPipe(Adapter):
    """One operating-system pipe, written and read as bytes."""

    name = "multiprocessing.Pipe"
    capacity = "the kernel's pipe buffer, 64 KiB as a rule"
    only_for = "one producer and one consumer"

    def __init__(self, room: Room) -> None:
        super().__init__(room)
        self.reader, self.writer = _fork.Pipe(duplex=False)

    @classmethod
    def fits(cls, producers: int, consumers: int) -> bool:
        return producers == consumers == 1

    def sender(self, index: int) -> Sender:
        return Sender(put=self.writer.send_bytes)

    def receiver(self, index: int) -> Receiver:
        return Receiver(get=self.reader.recv_bytes)


class MultiprocessingQueue(Adapter):
    """The standard library's own queue: pickle, a pipe and a feeder thread."""

    name = "multiprocessing.Queue"
    capacity = "1024 items (maxsize)"

    def __init__(self, room: Room) -> None:
        super().__init__(room)
        self.queue: Any = _fork.Queue(room.capacity)

    def sender(self, index: int) -> Sender:
        return Sender(put=self.queue.put)

    def receiver(self, index: int) -> Receiver:
        return Receiver(get=self.queue.get)


class EventFd(Adapter):
    """Two threads of control and the kernel's smallest signal: what a wake-up costs at best."""

    name = "eventfd"
    capacity = "one number"
    note = "carries a number and no item"
    only_for = "one producer and one consumer"

    def __init__(self, room: Room) -> None:
        super().__init__(room)
        self.descriptor = os.eventfd(0)

    @classmethod
    def fits(cls, producers: int, consumers: int) -> bool:
        return producers == consumers == 1

    def sender(self, index: int) -> Sender:
        descriptor = self.descriptor

        def put(item: int) -> None:
            os.eventfd_write(descriptor, item)

        return Sender(put=put)

    def receiver(self, index: int) -> Receiver:
        return Receiver(get=partial(os.eventfd_read, self.descriptor))

    def close(self) -> None:
        os.close(self.descriptor)
