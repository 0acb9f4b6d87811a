"""What the page may change, if it was started with ``--allow-actions``: each on the queue that the page has shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import queueduct
from queueduct.segments.kinds import KINDS
from queueduct.segments.names import Directory

__all__ = ["ACTIONS", "act"]


def shutdown(queue: Any, given: Mapping[str, Any]) -> str:
    queue.shutdown()
    return "shut down: puts raise ShutDown, and what is in it can still be got"


def clear(queue: Any, given: Mapping[str, Any]) -> str:
    log(queue).clear()
    return "cleared: readers go on with the next item"


def keep_last(queue: Any, given: Mapping[str, Any]) -> str:
    count = given.get("n")
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise ValueError(f"n must be a whole number of items from 0 on: n={count!r}")
    log(queue).keep_last(count)
    return f"what was before the last {count} items is forgotten"


def drop_reader(queue: Any, given: Mapping[str, Any]) -> str:
    name = given.get("reader")
    if not isinstance(name, str):
        raise ValueError(f"reader must be the name of a durable reader: reader={name!r}")
    log(queue).unsubscribe(name)
    return f"the reader {name!r} is dropped, and what only it needed is free"


def remove(queue: Any, given: Mapping[str, Any]) -> str:
    queue.unlink()
    return "the name is removed; processes that have the queue open go on with it"


ACTIONS: dict[str, Callable[[Any, Mapping[str, Any]], str]] = {
    "shutdown": shutdown,
    "clear": clear,
    "keep-last": keep_last,
    "drop-reader": drop_reader,
    "rm": remove,
}


def act(action: str, name: str, given: Mapping[str, Any], *, directory: Directory) -> str:
    """Does it, and returns what it did. ``given["segment"]`` says which queue of that name is meant."""
    queue: Any = queueduct.open(name, directory=directory)
    with queue:
        if given.get("segment") != queue.segment_id.hex():
            raise queueduct.QueueReplaced(
                f"the action must be meant for the queue that has the name {name!r} now: it is another one than the "
                "page has shown; look again"
            )
        return ACTIONS[action](queue, given)


def log(queue: Any) -> Any:
    if not KINDS[queue.kind].is_log:
        raise TypeError(f"only an event queue can do that: {queue.name!r} is of kind {queue.kind!r}")
    return queue
