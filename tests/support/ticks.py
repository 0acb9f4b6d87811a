"""What the tests of event queues have in common: a record, queues of every form, and what to do to them."""

from __future__ import annotations

import numpy as np

import queueduct
from queueduct import EventQueue

TICK = np.dtype([("id", "<u4"), ("px", "<f8")])

FORMS = {
    "references": (lambda **how: EventQueue(**how), lambda i: [i], lambda item: item[0]),
    "bytes": (lambda **how: EventQueue.create("q", **how), lambda i: b"%d" % i, int),
    "records": (
        lambda **how: EventQueue.create("q", item=TICK, **how),
        lambda i: (i, i / 2),
        lambda item: int(item["px"] * 2),
    ),
    "objects": (
        lambda **how: EventQueue.create("q", item=object, **how),
        lambda i: {"id": i},
        lambda item: item["id"],
    ),
}
"""How to make a queue, what goes in as the i-th item, and which one it was."""


def numbers(count: int, first: int = 0) -> np.ndarray:
    """Records of a queue of "<u8"."""
    return np.arange(first, first + count, dtype="<u8")


def drain(reader: queueduct.Reader) -> list:
    """All that is there now."""
    found = []
    while reader.lag:
        found += list(reader.get_many(1 << 20, block=False))
    return found


def fill(queue: EventQueue, first: int = 0) -> int:
    """Put rising numbers of "<u8" until there is no room; the number after the last."""
    while queue.try_put(first):
        first += 1
    return first
