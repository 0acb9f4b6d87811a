"""The peers between processes, each as its own documentation would have it used.

Every peer is given the form that suits it best: bytes stay bytes where it has a call for that,
and its capacity is as near to 1024 items of 64 bytes as its own unit allows.
"""

import ctypes
import itertools
import multiprocessing
from collections.abc import Sequence
from functools import partial
from typing import Any

from benchmarks.adapter import Adapter, Receiver, Room, Sender, load
from benchmarks.standard import MultiprocessingPipe, MultiprocessingQueue

_fork = multiprocessing.get_context("fork")


class HyperQ(Adapter):
    """A byte ring under a process-shared mutex; attached by name."""

    name = "hyperq"
    requirement = "hyperq==1.0.0"
    capacity = "bytes: 1024 x (64 + 8 of length)"

    def __init__(self, room: Room) -> None:
        super().__init__(room)
        self.queue: Any = load("hyperq").BytesHyperQ(room.capacity * (room.item_bytes + 8), name=room.tag)

    def sender(self, index: int) -> Sender:
        return Sender(put=load("hyperq").BytesHyperQ(self.room.tag).put)

    def receiver(self, index: int) -> Receiver:
        return Receiver(get=load("hyperq").BytesHyperQ(self.room.tag).get)


class ZeroQ(Adapter):
    """A lock-free ring of fixed elements; a wait is a loop with naps."""

    name = "zeroq"
    requirement = "zeroq==0.1.0"
    capacity = "1024 elements of 64 bytes"
    note = "waits by polling, with naps between"

    def __init__(self, room: Room) -> None:
        super().__init__(room)
        self.queue: Any = load("zeroq").Queue(
            room.tag, element_size=room.item_bytes, capacity=room.capacity, create=True
        )

    def sender(self, index: int) -> Sender:
        return Sender(put=load("zeroq").Queue(self.room.tag, create=False).put)

    def receiver(self, index: int) -> Receiver:
        return Receiver(get=load("zeroq").Queue(self.room.tag, create=False).get)

    def close(self) -> None:
        self.queue.close()


def _unchanged(item: bytes) -> bytes:
    return item


class FasterFifo(Adapter):
    """A byte ring under a mutex, with batch calls; bytes pass without pickle."""

    name = "faster-fifo"
    requirement = "faster-fifo==1.5.2"
    capacity = "bytes: 1024 x (64 + 8 of length)"
    note = "dumps/loads replaced: no pickle"

    def __init__(self, room: Room) -> None:
        super().__init__(room)
        self.queue = self.make(room.capacity * (room.item_bytes + 8))

    def make(self, capacity_bytes: int) -> Any:
        return load("faster_fifo").Queue(capacity_bytes, dumps=_unchanged, loads=bytes)

    def sender(self, index: int) -> Sender:
        return Sender(put=self.queue.put, put_many=self.queue.put_many)

    def receiver(self, index: int) -> Receiver:
        get_many = self.queue.get_many

        def at_most(count: int) -> Sequence[Any]:
            items: Sequence[Any] = get_many(max_messages_to_get=count)
            return items

        return Receiver(get=self.queue.get, get_many=at_most)


class PickledFasterFifo(FasterFifo):
    """The same with its default serializer, which is pickle."""

    name = "faster-fifo, pickled"
    note = "as installed: every item is pickled"

    def make(self, capacity_bytes: int) -> Any:
        return load("faster_fifo").Queue(capacity_bytes)


class PyZmq(Adapter):
    """PUSH and PULL over ipc; each consumer binds, each producer deals its items out in turn.

    One socket for each pair gives every consumer a known share,
    where one PUSH with many peers would deal by who has room.
    """

    name = "pyzmq"
    requirement = "pyzmq>=26"
    capacity = "high-water marks: 512 to send + 512 to receive, a pair of processes"

    def _address(self, consumer: int) -> str:
        return f"ipc://{self.room.directory}/{consumer}.zmq"

    def sender(self, index: int) -> Sender:
        zmq = load("zmq")
        context = zmq.Context()
        sends = []
        for consumer in range(self.room.consumers):
            socket = context.socket(zmq.PUSH)
            socket.set(zmq.SNDHWM, self.room.capacity // 2)
            socket.connect(self._address(consumer))
            sends.append(socket.send)
        if len(sends) == 1:
            return Sender(put=sends[0])
        turns = itertools.cycle(sends)

        def put(item: bytes) -> None:
            next(turns)(item)

        return Sender(put=put)

    def receiver(self, index: int) -> Receiver:
        zmq = load("zmq")
        socket = zmq.Context().socket(zmq.PULL)
        socket.set(zmq.RCVHWM, self.room.capacity // 2)
        socket.bind(self._address(index))
        return Receiver(get=socket.recv)

    def __init__(self, room: Room) -> None:
        super().__init__(room)
        load("zmq")


class PySharedMemory(Adapter):
    """A block of shared memory a message; made for messages of a megabyte, shown for scale."""

    name = "py-sharedmemory"
    requirement = "py-sharedmemory==4.3.1"
    capacity = "1024 messages"
    note = "its documentation advises it for messages of 1 MB and more"
    only_for = "one producer"

    def __init__(self, room: Room) -> None:
        super().__init__(room)
        make = load("py_sharedmemory").create_shared_memory_pair
        self.pair: tuple[Any, Any] = make(capacity=room.capacity, ctx=_fork)

    @classmethod
    def fits(cls, producers: int, consumers: int) -> bool:
        return producers == 1

    def sender(self, index: int) -> Sender:
        sender = self.pair[0]
        return Sender(put=sender.put, finish=partial(sender.wait_for_all_ack, timeout=10))

    def receiver(self, index: int) -> Receiver:
        return Receiver(get=self.pair[1].get)


class Iceoryx2(Adapter):
    """Publish and subscribe without overflow: a full subscriber makes the publisher wait."""

    name = "iceoryx2"
    requirement = "iceoryx2==0.10.0"
    capacity = "subscriber buffer of 1024 samples of 64 bytes"
    note = "no blocking receive: it is polled"
    only_for = "one consumer: every subscriber gets every sample, it is no work queue"

    @classmethod
    def fits(cls, producers: int, consumers: int) -> bool:
        return producers == consumers == 1

    def __init__(self, room: Room) -> None:
        super().__init__(room)
        self.kept: object = self._service()  # the workers open what exists: no race to create it

    def close(self) -> None:
        self.kept = None

    def _service(self) -> tuple[Any, Any, type[ctypes.Structure]]:
        iox = load("iceoryx2")
        iox.set_log_level(iox.LogLevel.Error)

        class Item(ctypes.Structure):
            _fields_ = (("data", ctypes.c_uint8 * self.room.item_bytes),)

        config = iox.config.default()
        config.global_cfg.prefix = iox.FileName.new(f"{self.room.tag}_")
        config.global_cfg.root_path = iox.Path.new(f"{self.room.directory}/iceoryx2")
        node = iox.NodeBuilder.new().config(config).create(iox.ServiceType.Ipc)
        service = (
            node.service_builder(iox.ServiceName.new(self.room.tag))
            .publish_subscribe(Item)
            .enable_safe_overflow(False)
            .subscriber_max_buffer_size(self.room.capacity)
            .max_publishers(1)
            .max_subscribers(1)
            .history_size(0)
            .open_or_create()
        )
        return iox, (node, service), Item

    def sender(self, index: int) -> Sender:
        iox, (node, service), item_type = self._service()
        publisher = (
            service.publisher_builder().backpressure_strategy(iox.BackpressureStrategy.RetryUntilDelivered).create()
        )
        as_item = item_type.from_buffer_copy

        def put(item: bytes, _owner: object = node) -> None:
            while not publisher.send_copy(as_item(item)):
                pass  # now and then a send reaches none although the subscriber is there

        return Sender(put=put)

    def receiver(self, index: int) -> Receiver:
        _, (node, service), _item = self._service()
        subscriber = service.subscriber_builder().create()
        receive = subscriber.receive
        size = self.room.item_bytes

        def get(_owner: object = node) -> bytes:
            while (sample := receive()) is None:
                pass
            item = ctypes.string_at(sample.payload_ptr, size)
            sample.delete()
            return item

        return Receiver(get=get)


BETWEEN_PROCESSES: tuple[type[Adapter], ...] = (
    HyperQ,
    ZeroQ,
    PyZmq,
    MultiprocessingPipe,
    FasterFifo,
    MultiprocessingQueue,
    Iceoryx2,
    PySharedMemory,
)
