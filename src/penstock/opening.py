"""Open a queue of any kind by name: the header knows what it is."""

from __future__ import annotations

from pathlib import Path

from penstock import segment
from penstock._bounded import BoundedQueue

__all__ = ["open", "reopen"]

CLASSES = {"bounded": BoundedQueue}


def open(name: str, *, allow_pickle: bool = True) -> BoundedQueue:
    """Open the queue of that name, whatever its kind."""
    return _attach(segment.open_segment(name), allow_pickle)


def reopen(name: str, folder: str, segment_id: bytes) -> BoundedQueue:
    """What a pickled queue becomes: the same queue, or QueueReplaced."""
    return _attach(segment.open_segment(name, folder=Path(folder), segment_id=segment_id), True)


def _attach(opened: segment.Segment, allow_pickle: bool) -> BoundedQueue:
    return CLASSES[opened.geometry.kind]._attach(opened, allow_pickle)
