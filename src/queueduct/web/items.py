"""The last items of a queue as text, for ``--show-items``. Nothing is taken, and nothing is unpickled."""

from __future__ import annotations

from typing import Any

import numpy as np

import queueduct
from queueduct.segments.names import Directory

__all__ = ["last_items"]

COUNT = 20
TEXT_LIMIT = 400


def last_items(name: str, *, directory: Directory) -> dict[str, Any]:
    """Returns the last items that can be seen without taking them, and where the first of them is."""
    with queueduct.watch(name, directory=directory) as watch:
        kind, item = watch.kind, watch.item
    if item is object:
        raise TypeError(f"objects are not shown: to unpickle an item of {name!r} would run what a producer has put")
    if kind == "events":
        with queueduct.EventQueue.open(name, directory=directory) as log:
            end = log.end
            start = max(log.earliest, end - COUNT)
            return {"start": start, "items": as_texts(log.read(start, end), item)}
    if kind == "overwriting":
        with queueduct.OverwritingQueue.open(name, directory=directory) as feed:
            newest = feed.peek(None)
            return {"start": None, "items": [] if newest is None else as_texts([newest], item)}
    raise TypeError(f"the items of a queue of kind {kind!r} are seen only by those who get them: {name!r}")


def as_texts(items: Any, item: Any) -> list[str]:
    return [text_of(each, item) for each in items]


def text_of(value: Any, item: Any) -> str:
    if isinstance(item, np.dtype) and item.names is not None:
        text = ", ".join(f"{name}={value[name]}" for name in item.names)
    elif isinstance(value, bytes):
        text = value[:TEXT_LIMIT].decode(errors="backslashreplace")
    else:
        text = np.array2string(value, threshold=16) if isinstance(value, np.ndarray) else str(value)
    return text if len(text) <= TEXT_LIMIT else text[:TEXT_LIMIT] + "…"
