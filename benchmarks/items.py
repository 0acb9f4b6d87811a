"""The items that travel, and the proof that each of them arrived once and in order.

A 64-byte item is eight 64-bit words::

    word 0      key: producer in the upper half, sequence number in the lower
    word 1..7   key times a fixed odd number, one for each word

so that an item made of two halves of different items is found as surely as a lost one.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

ITEM_BYTES = 64

Keys = NDArray[np.uint64]

_PRODUCER_SHIFT = np.uint64(32)
_SEQUENCE_MASK = np.uint64(0xFFFF_FFFF)
_FACTORS = np.array([1, 3, 7, 31, 127, 8191, 131071, 524287], dtype=np.uint64)
_CHUNK = 65536


class TornItemError(Exception):
    """An item arrived that no producer has sent."""


def keys_of(producer: int, first: int, count: int) -> Keys:
    """Return the keys of `count` items of one producer, from sequence number `first` on."""
    sequence = np.arange(first, first + count, dtype=np.uint64)
    keys: Keys = (np.uint64(producer) << _PRODUCER_SHIFT) | sequence
    return keys


def build(producer: int, first: int, count: int) -> list[bytes]:
    """Make the items before the clock starts; each is a bytes object of its own."""
    items: list[bytes] = []
    for start in range(first, first + count, _CHUNK):
        keys = keys_of(producer, start, min(_CHUNK, first + count - start))
        packed = np.multiply.outer(keys, _FACTORS).tobytes()
        items += [packed[at : at + ITEM_BYTES] for at in range(0, len(packed), ITEM_BYTES)]
    return items


def keys_in(received: Sequence[bytes]) -> Keys:
    """Read the keys back in order of arrival, and refuse items that are torn."""
    parts: list[Keys] = []
    for start in range(0, len(received), _CHUNK):
        chunk = received[start : start + _CHUNK]
        wrong_size = [len(item) for item in chunk if len(item) != ITEM_BYTES]
        if wrong_size:
            raise TornItemError(f"an item has {wrong_size[0]} bytes, {ITEM_BYTES} were sent")
        words = np.frombuffer(b"".join(chunk), dtype=np.uint64).reshape(-1, len(_FACTORS))
        keys = words[:, 0].copy()
        torn = np.count_nonzero((words != np.multiply.outer(keys, _FACTORS)).any(axis=1))
        if torn:
            raise TornItemError(f"{torn} items were torn")
        parts.append(keys)
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.uint64)


def keys_in_pairs(received: Sequence[tuple[int, int]]) -> Keys:
    """Read the keys of Python objects: pairs of producer and sequence number."""
    pairs: NDArray[Any] = np.array(received, dtype=np.uint64).reshape(-1, 2)
    keys: Keys = (pairs[:, 0] << _PRODUCER_SHIFT) | pairs[:, 1]
    return keys


def faults(arrived: Sequence[Keys], sent: Sequence[int]) -> list[str]:
    """Name everything that is wrong; an empty list means that the run is good.

    `arrived` has one array of keys for each consumer, in its order of arrival.
    `sent` has the number of items of each producer.
    """
    found: list[str] = []
    together: Keys = np.concatenate(list(arrived)) if arrived else np.empty(0, dtype=np.uint64)
    producers = together >> _PRODUCER_SHIFT
    unknown = int(np.count_nonzero(producers >= len(sent)))
    for producer, count in enumerate(sent):
        sequence = together[producers == producer] & _SEQUENCE_MASK
        known = sequence[sequence < count]
        unknown += len(sequence) - len(known)
        times = np.bincount(known.astype(np.int64), minlength=count)
        lost = int(np.count_nonzero(times == 0))
        doubled = int(np.count_nonzero(times > 1))
        if lost:
            found.append(f"producer {producer}: {lost} of {count} items lost")
        if doubled:
            found.append(f"producer {producer}: {doubled} items delivered twice")
    if unknown:
        found.append(f"{unknown} items arrived that were never sent")
    for consumer, keys in enumerate(arrived):
        for producer in range(len(sent)):
            own = keys[keys >> _PRODUCER_SHIFT == producer].astype(np.int64)
            swapped = int(np.count_nonzero(np.diff(own) < 0))
            if swapped:
                found.append(f"consumer {consumer}: producer {producer} out of order {swapped} times")
    return found
