from typing import Any

from typing_extensions import TypeVar

from queueduct.multiprocessing._queues import Queue

_T = TypeVar("_T", default=Any)

class JoinableQueue(Queue[_T]):
    """``multiprocessing.JoinableQueue(maxsize)``."""

    def task_done(self) -> None: ...
    def join(self) -> None: ...
