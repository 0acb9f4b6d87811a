"""Records, numbers and frames: what is one array, and what is a list."""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

from queueduct import BoundedQueue, EventQueue, Reader, SlotQueue


def of_records(q: BoundedQueue[np.void]) -> None:
    assert_type(q.get(), np.void)
    assert_type(q.get_many(10), NDArray[np.void])
    assert_type(q.lease(10).items, NDArray[np.void])
    q.put((b"ACME", 101.5))
    q.put({"symbol": b"ACME", "price": 101.5})
    q.put_many(q.get_many(10))
    q.put_many([(b"ACME", 101.5)])
    q.get_many(10).append(3)  # error: attr-defined


def of_numbers(q: BoundedQueue[np.float64]) -> None:
    assert_type(q.get_many(10), NDArray[np.float64])
    assert_type(q.lease(10).items, NDArray[np.float64])
    q.put(np.float64(1.5))
    q.put_many(np.ones(3))
    q.put("1.5")  # error: arg-type


def of_frames(q: SlotQueue[NDArray[np.float32]]) -> None:
    """Several arrays are one array if they are records, and a list if they are objects."""
    assert_type(q.get(), NDArray[np.float32])
    assert_type(q.take().copy(), NDArray[np.float32])
    assert_type(q.get_many(10), Any)
    assert_type(q.lease(10).items, Any)
    q.put(np.zeros((3, 4), np.float32))
    q.put("frame")  # error: arg-type


def of_a_log(log: EventQueue[np.void]) -> None:
    assert_type(log.read(0, 10), NDArray[np.void])
    reader = log.subscribe("archive")
    assert_type(reader, Reader[np.void])
    assert_type(reader.get(), np.void)
    assert_type(reader.get_many(10), NDArray[np.void])
    with reader.view() as array:
        assert_type(array["price"], Any)


def of_a_log_of_objects(log: EventQueue[str]) -> None:
    assert_type(log.read(0, 10), list[str])
    reader = log.subscribe()
    assert_type(reader.try_get(), str | None)
    assert_type(reader.try_get(0), str | int)
    assert_type(reader.get_many(10), list[str])
    assert_type([line.upper() for line in reader], list[str])
    reader.put("line")  # error: attr-defined


def a_reader_of_a_class_reads_its_base(reader: Reader[bool]) -> Reader[int]:
    return reader
