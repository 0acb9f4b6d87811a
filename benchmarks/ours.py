"""Queueduct behind the calls that all queues are measured by."""

from typing import Any

from benchmarks.adapter import Adapter, Receiver, Room, Sender, load

NAME = "queueduct"
EVENTS = "queueduct events"


class Queueduct(Adapter):
    """A named queue of bytes; each worker opens it by its name."""

    name = NAME
    capacity = "1024 slots of 64 bytes"

    def __init__(self, room: Room) -> None:
        super().__init__(room)
        self.queue: Any = load("queueduct").BoundedQueue.create(
            room.tag, capacity=room.capacity, item=bytes, slot_bytes=room.item_bytes
        )

    def _open(self) -> Any:
        return load("queueduct").BoundedQueue.open(self.room.tag)

    def sender(self, index: int) -> Sender:
        queue = self._open()
        return Sender(put=queue.put, put_many=queue.put_many)

    def receiver(self, index: int) -> Receiver:
        queue = self._open()
        return Receiver(get=queue.get, get_many=queue.get_many)

    def close(self) -> None:
        self.queue.close()
        load("queueduct").unlink(self.room.tag)
