"""Open a queue of any kind by name: the header knows what it is."""

from __future__ import annotations

from pathlib import Path

from queueduct.errors import CorruptSegment
from queueduct.events.queue import EventQueue
from queueduct.overwriting.queue import OverwritingQueue
from queueduct.rings.bounded import BoundedQueue
from queueduct.rings.growing import GrowingQueue
from queueduct.segments import segment
from queueduct.slots.queue import SlotQueue

__all__ = ["open", "reopen"]

AnyQueue = BoundedQueue | EventQueue | GrowingQueue | OverwritingQueue | SlotQueue
CLASSES: dict[str, type[AnyQueue]] = {
    "bounded": BoundedQueue,
    "events": EventQueue,
    "growing": GrowingQueue,
    "overwriting": OverwritingQueue,
    "slots": SlotQueue,
}


def open(name: str, *, allow_pickle: bool = True) -> AnyQueue:
    """Open the queue of that name, whatever its kind."""
    return _attach(segment.open_segment(name), allow_pickle)


def reopen(name: str, folder: str, segment_id: bytes, queue_class: type[AnyQueue]) -> AnyQueue:
    """What a pickled queue becomes: the same queue, or QueueReplaced."""
    return queue_class._attach(segment.open_segment(name, folder=Path(folder), segment_id=segment_id), True)


def _attach(opened: segment.Segment, allow_pickle: bool) -> AnyQueue:
    queue_class = CLASSES.get(opened.geometry.kind)
    if queue_class is None:
        opened.close()
        raise CorruptSegment(f"{opened.path}: this version of queueduct has no queue of kind {opened.geometry.kind!r}")
    return queue_class._attach(opened, allow_pickle)
