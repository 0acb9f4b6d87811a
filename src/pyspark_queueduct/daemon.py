"""PySpark's daemon, quiet about workers that Spark has closed: ``spark.python.daemon.module``.

Spark closes a worker that no task has used for a minute, or of whose rows it needs no more. The worker then writes to
a closed socket, and PySpark's daemon prints a traceback to the user's terminal. This daemon does not. Spark reports
the errors of tasks. Workers that only plan a read still start from PySpark's own daemon.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from pyspark import daemon

__all__ = ["quiet_when_closed"]


def quiet_when_closed(work: Callable[..., int]) -> Callable[..., int]:
    """Wraps the daemon's function for one worker, so that a closed socket ends the worker without an error."""

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
