"""Numbered items through a queue, and the proof that each came once and in its producer's order."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

PRODUCER_SHIFT = 40


class Form(NamedTuple):
    """How numbers become items and items numbers again, one at a time and in batches."""

    create: dict[str, Any]
    put: Callable[[Any, int, int], None]
    """put(queue, producer, count): all numbers of one producer."""
    get: Callable[[Any], Iterator[Iterable[int]]]
    """get(queue): numbers until the shutdown, as they come."""


def number(producer: int, i: int) -> int:
    return producer << PRODUCER_SHIFT | i


def as_bytes(value: int) -> bytes:
    """Of 8 to 71 bytes, the rest a pattern: an item that is cut or mixed with another one shows."""
    return value.to_bytes(8, "little") + bytes([value & 0xFF]) * (value * 7 & 63)


def from_bytes(item: bytes) -> int:
    value = int.from_bytes(item[:8], "little")
    if item != as_bytes(value):
        raise AssertionError(f"a torn item: {item!r}")
    return value


def put_each(convert: Callable[[int], Any]) -> Callable[[Any, int, int], None]:
    def put(q: Any, producer: int, count: int) -> None:
        for i in range(count):
            q.put(convert(number(producer, i)))

    return put


def get_each(convert: Callable[[Any], int]) -> Callable[[Any], Iterator[Iterable[int]]]:
    def get(q: Any) -> Iterator[Iterable[int]]:
        yield (convert(item) for item in q)

    return get


def put_batches(convert: Callable[[list[int]], Any], batch: int) -> Callable[[Any, int, int], None]:
    def put(q: Any, producer: int, count: int) -> None:
        done = 0
        while done < count:
            size = min(batch - producer * 3, count - done)
            done += q.put_many(convert([number(producer, done + i) for i in range(size)]))

    return put


def get_batches(convert: Callable[[Any], Iterable[int]], batch: int) -> Callable[[Any], Iterator[Iterable[int]]]:
    def get(q: Any) -> Iterator[Iterable[int]]:
        from queueduct import ShutDown

        while True:
            try:
                yield convert(q.get_many(batch))
            except ShutDown:
                return

    return get


FORMS = {
    "bytes, one at a time": Form({}, put_each(as_bytes), get_each(from_bytes)),
    "bytes, in batches": Form(
        {},
        put_batches(lambda numbers: [as_bytes(n) for n in numbers], 50),
        get_batches(lambda items: map(from_bytes, items), 70),
    ),
    "long bytes, one at a time": Form({"slot_bytes": 16}, put_each(as_bytes), get_each(from_bytes)),
    "long bytes, in batches": Form(
        {"slot_bytes": 16},
        put_batches(lambda numbers: [as_bytes(n) for n in numbers], 50),
        get_batches(lambda items: map(from_bytes, items), 70),
    ),
    "records, one at a time": Form({"item": "<u8"}, put_each(lambda n: n), get_each(int)),
    "records, in batches": Form(
        {"item": "<u8"},
        put_batches(lambda numbers: np.array(numbers, "<u8"), 200),
        get_batches(lambda items: items.tolist(), 300),
    ),
    "objects, one at a time": Form({"item": object}, put_each(lambda n: {"n": n}), get_each(lambda item: item["n"])),
}


def received(form: Form, q: Any) -> np.ndarray:
    """Everything one consumer gets, in its order."""
    return np.fromiter((value for part in form.get(q) for value in part), "<u8")


def put_ranges(q: Any, producer: int, count: int, batch: int = 2000) -> None:
    """All numbers of one producer as records, in large batches."""
    for first in range(0, count, batch):
        numbers = np.arange(first, min(first + batch, count), dtype="<u8")
        assert q.put_many(numbers + number(producer, 0)) == len(numbers)


def check(consumers: list[np.ndarray], producers: int, count: int) -> None:
    """Each number exactly once; what a consumer got of a producer is in that producer's order."""
    together = np.sort(np.concatenate(consumers))
    expected = np.concatenate([np.arange(count, dtype="<u8") + (p << PRODUCER_SHIFT) for p in range(producers)])
    assert len(together) == len(expected), f"{len(expected)} items went in, {len(together)} came out"
    assert (together == expected).all()
    for mine in consumers:
        for producer in range(producers):
            sequence = mine[mine >> PRODUCER_SHIFT == producer].astype("<i8")
            assert (np.diff(sequence) > 0).all(), f"producer {producer}'s items came out of order"


class Witness:
    """Sees numbers as they come, and that none of any producer is missing, doubled or out of its order."""

    def __init__(self, producers: int, from_first: bool = True) -> None:
        self.next: list[int | None] = [0 if from_first else None] * producers
        self.count = 0
        self.order = 0
        """A checksum of everything in its order."""

    def see(self, numbers: Iterable[int]) -> None:
        got = np.fromiter(numbers, "<u8") if not isinstance(numbers, np.ndarray) else numbers
        self.order = zlib.crc32(np.ascontiguousarray(got).view("u1"), self.order)
        self.count += len(got)
        writers = got >> PRODUCER_SHIFT
        assert len(got) == 0 or writers.max() < len(self.next), "a number of nobody"
        for producer, expected in enumerate(self.next):
            mine = (got[writers == producer] & ((1 << PRODUCER_SHIFT) - 1)).astype("<i8")
            if len(mine):
                assert expected is None or mine[0] == expected, f"{mine[0]} of {producer} came, not {expected}"
                assert (np.diff(mine) == 1).all(), f"producer {producer}'s items came out of order"
                self.next[producer] = int(mine[-1]) + 1
