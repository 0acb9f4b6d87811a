"""PySpark's daemon, quiet about workers that Spark has closed: ``spark.python.daemon.module``.

Spark closes a worker that nobody needed for a minute, or whose rows it has read enough of. The worker says so to a
socket that nobody reads any more, and the daemon prints a traceback of that to the terminal of whoever waits for data.
What goes wrong in a task is told by Spark. Workers that only plan a read are started by PySpark's own daemon still.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from pyspark import daemon

__all__ = ["quiet_when_closed"]


def quiet_when_closed(work: Callable[..., int]) -> Callable[..., int]:
    """The daemon's function for one worker's task, for which a closed socket is an end and not an error."""

    @functools.wraps(work)
    def worker(*arguments: object) -> int:
        try:
            return work(*arguments)
        except BrokenPipeError:
            return 1  # no further task

    return worker


if __name__ == "__main__":
    vars(daemon)["worker"] = quiet_when_closed(daemon.worker)
    daemon.manager()
