"""What a pool says of itself."""

from typing import NamedTuple

__all__ = ["WorkersProgress"]


class WorkersProgress(NamedTuple):
    """One look at a pool. Exact while nothing moves, else a snapshot."""

    put: int
    """Jobs that the pool knows of: waiting, running, done and dead."""
    waiting: int
    """Jobs in the queue that no worker has, and jobs that wait for their next try."""
    running: int
    """Jobs that a function works on just now."""
    done: int
    """Jobs whose function has returned."""
    failed: int
    """Tries that raised an exception, or in which the worker died."""
    retried: int
    """Jobs that were handed out again after a failed try."""
    dead_letters: int
    """Jobs that failed in every try."""
    redelivered: int
    """Jobs that the queue has delivered again, because a worker died or gave them back."""
    workers: int
    """Worker processes alive."""
    restarts: int
    """Workers that were started in place of one that had ended."""
