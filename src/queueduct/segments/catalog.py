"""Named queues of any kind, by directory: open, list, unlink. A segment's header says which kind it is."""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING, Any, TypeAlias

from queueduct.errors import CorruptSegment, QueueNotFound, QueueReplaced
from queueduct.segments.kinds import KINDS
from queueduct.segments.names import Directory, check_name, directory_of, renaming
from queueduct.segments.segment import Segment, creation_of, open_regular, open_segment, validate
from queueduct.segments.timeouts import checked_timeout
from queueduct.stats import QueueInfo

if TYPE_CHECKING:
    from queueduct.events.queue import EventQueue
    from queueduct.overwriting.queue import OverwritingQueue
    from queueduct.rings.bounded import BoundedQueue
    from queueduct.rings.growing import GrowingQueue
    from queueduct.slots.queue import SlotQueue

    AnyQueue: TypeAlias = (
        BoundedQueue[Any] | EventQueue[Any] | GrowingQueue[Any] | OverwritingQueue[Any] | SlotQueue[Any]
    )

__all__ = ["await_segment", "open", "queues", "reopen", "unlink", "unlink_segment"]

FIRST_PAUSE_SECONDS = 0.0005
LONGEST_PAUSE_SECONDS = 0.02


def open(
    name: str, *, directory: Directory = None, allow_pickle: bool = True, timeout: float | None = None
) -> AnyQueue:
    """Open the queue of that name, whatever its kind; wait for it to be created, at most ``timeout`` seconds.

    >>> made = queueduct.EventQueue.create("ticks")
    >>> q = queueduct.open("ticks")
    >>> q.kind
    'events'
    >>> q.unlink()
    """
    opened = await_segment(name, directory=directory, timeout=timeout)
    queue: AnyQueue = KINDS[opened.geometry.kind].queue_class._attach(opened, allow_pickle)
    return queue


def reopen(name: str, directory: str, segment_id: bytes, queue_class: type[Any]) -> Any:
    """Opens a pickled queue again. Raises QueueReplaced if the name belongs to another queue now."""
    return queue_class._attach(open_segment(name, directory=directory, segment_id=segment_id), True)


def queues(*, directory: Directory = None) -> list[QueueInfo]:
    """List every queue in the directory, by name. Other files are left out.

    >>> q = queueduct.BoundedQueue.create("jobs")
    >>> [(each.name, each.kind) for each in queueduct.queues()]
    [('jobs', 'bounded')]
    >>> q.unlink()
    """
    folder = directory_of(directory)
    found = []
    for entry in sorted(os.listdir(folder)):
        if entry.startswith("."):
            continue
        # whatever file it is, the others are listed
        with (
            contextlib.suppress(CorruptSegment, QueueNotFound, OSError),
            open_regular(folder / entry, read_only=True) as fd,
        ):
            geometry = validate(folder / entry, fd)[0]
            found.append(QueueInfo(entry, geometry.kind, *creation_of(geometry, fd)))
    return found


def unlink(name: str, *, directory: Directory = None, missing_ok: bool = False) -> None:
    """Remove the name. Processes that have the queue open can still use it; its memory is freed with the last one.

    With ``missing_ok`` a name that is not there is no error.

    >>> q = queueduct.BoundedQueue.create("jobs")
    >>> queueduct.unlink("jobs")
    >>> queueduct.unlink("jobs", missing_ok=True)
    """
    path = directory_of(directory) / check_name(name)
    try:
        with renaming(path.parent):
            os.unlink(path)
    except FileNotFoundError:
        if not missing_ok:
            raise QueueNotFound(f"there is no queue named {name!r} in {path.parent}") from None


def unlink_segment(opened: Segment, *, missing_ok: bool = False) -> None:
    """Removes the name of a segment, and never that of a later queue of the same name."""
    path = opened.path
    try:
        with renaming(path.parent):
            if not opened.has_name():
                raise QueueReplaced(
                    f"the name {opened.name!r} in {path.parent} belongs to another queue than this handle's: its own "
                    "queue was replaced or recreated; to remove the new one, open it, or use queueduct.unlink(name)"
                )
            os.unlink(path)
    except FileNotFoundError:
        if not missing_ok:
            raise QueueNotFound(f"there is no queue named {opened.name!r} in {path.parent}") from None


def await_segment(
    name: str, *, directory: Directory = None, kind: str | None = None, timeout: float | None = None
) -> Segment:
    """Opens a segment; looks for it again and again, at most ``timeout`` seconds, if it is not there yet.

    Nothing in the standard library tells of a new file, and the directory may be missing, too: so it polls.
    """
    until = time.monotonic() + checked_timeout(timeout)
    pause = FIRST_PAUSE_SECONDS
    while True:
        try:
            return open_segment(name, directory=directory, kind=kind)
        except QueueNotFound as error:
            left = until - time.monotonic()
            if left <= 0:
                if not timeout:
                    raise
                raise QueueNotFound(f"{error} after {timeout} s; start its creator, or wait longer") from None
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, LONGEST_PAUSE_SECONDS)
