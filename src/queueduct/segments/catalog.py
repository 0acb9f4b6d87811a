"""Named queues of any kind, by directory: open, list, unlink. A segment's header says which kind it is."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

from queueduct.errors import CorruptSegment, QueueNotFound
from queueduct.segments.kinds import KINDS
from queueduct.segments.names import Directory, check_name, directory_of
from queueduct.segments.segment import open_regular, open_segment, validate
from queueduct.stats import QueueInfo

if TYPE_CHECKING:
    from queueduct.events.queue import EventQueue
    from queueduct.overwriting.queue import OverwritingQueue
    from queueduct.rings.bounded import BoundedQueue
    from queueduct.rings.growing import GrowingQueue
    from queueduct.slots.queue import SlotQueue

    AnyQueue = BoundedQueue | EventQueue | GrowingQueue | OverwritingQueue | SlotQueue

__all__ = ["open", "queues", "reopen", "unlink"]


def open(name: str, *, directory: Directory = None, allow_pickle: bool = True) -> AnyQueue:
    """Open the queue of that name, whatever its kind."""
    opened = open_segment(name, directory=directory)
    queue: AnyQueue = KINDS[opened.geometry.kind].queue_class._attach(opened, allow_pickle)
    return queue


def reopen(name: str, directory: str, segment_id: bytes, queue_class: type[Any]) -> Any:
    """Opens a pickled queue again. Raises QueueReplaced if the name belongs to another queue now."""
    return queue_class._attach(open_segment(name, directory=directory, segment_id=segment_id), True)


def queues(*, directory: Directory = None) -> list[QueueInfo]:
    """List every queue in the directory, by name. Other files are left out."""
    folder = directory_of(directory)
    found = []
    for entry in sorted(os.listdir(folder)):
        if entry.startswith("."):
            continue
        with contextlib.suppress(CorruptSegment, QueueNotFound, PermissionError), open_regular(folder / entry) as fd:
            found.append(QueueInfo(entry, validate(folder / entry, fd)[0].kind))
    return found


def unlink(name: str, *, directory: Directory = None) -> None:
    """Remove the name. Processes that have the queue open can still use it; its memory is freed with the last one."""
    path = directory_of(directory) / check_name(name)
    try:
        os.unlink(path)
    except FileNotFoundError:
        raise QueueNotFound(f"there is no queue named {name!r} in {path.parent}") from None
