"""The arguments of a pool, checked before anything starts."""

from __future__ import annotations

import math
import multiprocessing
import os
import reprlib
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.context import BaseContext
from typing import Any

from queueduct.errors import QueueNotFound
from queueduct.items.types import encode_object
from queueduct.rings import BoundedQueue, GrowingQueue
from queueduct.segments import catalog
from queueduct.segments.names import Directory

__all__ = ["Options", "job_queue", "letter_queue", "result_queue"]

PROCESSES_LIMIT = 1024
RETRIES_LIMIT = 1000
WORKER_MODULE = "queueduct.pool.worker"


@dataclass(frozen=True)
class Options:
    """Checked options of Workers."""

    function: Callable[[Any], object]
    processes: int
    retries: int
    retry_delay: float
    max_retry_delay: float
    task_timeout: float | None
    max_tasks_per_child: int | None
    max_batch: int
    context: BaseContext
    initializer: Callable[..., object] | None
    initargs: tuple[Any, ...]

    def delay_of(self, tries: int) -> float:
        """Returns how long a job waits that has failed so often: twice as long each time."""
        return min(self.max_retry_delay, self.retry_delay * 2.0 ** min(tries - 1, 60))


def checked(options: dict[str, Any]) -> Options:
    """Returns the options, or raises TypeError or ValueError."""
    processes = options["processes"]
    if processes is None:
        processes = len(os.sched_getaffinity(0))
    whole("processes", processes, PROCESSES_LIMIT)
    whole("retries", options["retries"], RETRIES_LIMIT)
    whole("max_batch", options["max_batch"], 1 << 16)
    if options["max_tasks_per_child"] is not None:
        whole("max_tasks_per_child", options["max_tasks_per_child"], 1 << 62)
    for label in ("retry_delay", "max_retry_delay"):
        seconds(label, options[label], at_least=0.0)
    if options["task_timeout"] is not None:
        seconds("task_timeout", options["task_timeout"], at_least=0.001)
    if not callable(options["function"]):
        raise TypeError(f"function must be callable: function={options['function']!r}")
    initializer = options["initializer"]
    if initializer is not None and not callable(initializer):
        raise TypeError(f"initializer must be callable or None: initializer={initializer!r}")
    if not isinstance(options["initargs"], Iterable):
        raise TypeError(f"initargs must be a tuple of the initializer's arguments: initargs={options['initargs']!r}")
    context = context_of(options["context"])
    made = Options(**{**options, "processes": processes, "context": context, "initargs": tuple(options["initargs"])})
    if context.get_start_method() != "fork":
        for label, value in (("function", made.function), ("initializer", initializer), ("initargs", made.initargs)):
            check_pickles(label, value, context)
    return made


def whole(label: str, value: object, limit: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{label} must be an int: {label}={value!r}")
    if not 1 <= value <= limit:
        raise ValueError(f"{label} must be between 1 and {limit}: {label}={value}")


def seconds(label: str, value: object, *, at_least: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{label} must be a number of seconds: {label}={value!r}")
    if not at_least <= value or math.isinf(value):
        raise ValueError(f"{label} must be a finite number of at least {at_least:g} seconds: {label}={value!r}")


def context_of(context: object) -> BaseContext:
    """Returns how workers start: by default by a fork server, which is safe beside threads, or as the program spawns.

    A program cannot be asked whether it has chosen fork: multiprocessing itself sets that with the first start.
    """
    if context is None:
        context = "spawn" if multiprocessing.get_start_method(allow_none=True) == "spawn" else "forkserver"
    if isinstance(context, str):
        methods = multiprocessing.get_all_start_methods()
        if context not in methods:
            raise ValueError(f"context must be one of {', '.join(methods)}: context={context!r}")
        context = multiprocessing.get_context(context)
    if not isinstance(context, BaseContext):
        raise TypeError(f"context must be a start method's name or a context of multiprocessing: context={context!r}")
    if context.get_start_method() == "forkserver":
        server: Any = forkserver._forkserver
        modules = getattr(server, "_preload_modules", ["__main__"])
        if WORKER_MODULE not in modules:  # a worker then starts in milliseconds; no matter if the server runs already
            context.set_forkserver_preload([*modules, WORKER_MODULE])
    return context


def check_pickles(label: str, value: object, context: BaseContext) -> None:
    """Raises TypeError if a new process could not get the value."""
    main = sys.modules["__main__"]
    if getattr(value, "__module__", None) == "__main__" and not hasattr(main, "__file__") and main.__spec__ is None:
        raise TypeError(
            f"{label} must be in a module that a new process can import, and this program is no file: "
            f'{label}={reprlib.repr(value)}; define it in a file and import it, or pass context="fork"'
        )
    try:
        encode_object(value)
    except Exception as error:
        raise TypeError(
            f"{label} must be picklable, as workers start by {context.get_start_method()}: "
            f"{label}={reprlib.repr(value)} ({error}); "
            'define it at the top level of a module, or pass context="fork"'
        ) from error


def job_queue(queue: object, directory: Directory) -> tuple[Any, bool]:
    """Returns the open queue of the jobs, and whether this call has opened it."""
    opened: Any = catalog.open(queue, directory=directory) if isinstance(queue, str) else queue
    try:
        if not isinstance(opened, (BoundedQueue, GrowingQueue)):
            raise TypeError(
                f"queue must be a BoundedQueue or a GrowingQueue, its name, or None for a queue of the pool's own: "
                f"queue={opened!r}"
            )
        if opened.name is None:
            raise ValueError(
                f"queue must have a name, as workers are other processes: queue={opened!r}; "
                f"use {type(opened).__name__}.create(name, ...), or None for a queue of the pool's own"
            )
    except BaseException:
        if isinstance(queue, str):
            opened.close()
        raise
    return opened, isinstance(queue, str)


def letter_queue(queue: object, directory: Directory) -> tuple[Any, bool]:
    return object_queue("dead_letters", queue, directory)


def result_queue(queue: object, directory: Directory) -> tuple[Any, bool]:
    opened, is_ours = object_queue("results", queue, directory)
    if isinstance(opened, (BoundedQueue, GrowingQueue)):
        return opened, is_ours
    if is_ours:
        opened.close()
    raise TypeError(f"results must be a BoundedQueue or a GrowingQueue of objects, or its name: results={queue!r}")


def object_queue(label: str, queue: object, directory: Directory) -> tuple[Any, bool]:
    """Opens a queue of objects, or creates it."""
    opened: Any = queue
    if isinstance(queue, str):
        try:
            opened = catalog.open(queue, directory=directory)
        except QueueNotFound:
            opened = GrowingQueue.create(queue, item=object, directory=directory, exist_ok=True)
    if getattr(opened, "item", None) is object and getattr(opened, "name", None) is not None:
        return opened, isinstance(queue, str)
    if isinstance(queue, str):
        opened.close()
    raise TypeError(
        f"{label} must be a named queue of objects, or its name: {label}={queue!r}; "
        "create it with item=object, or leave that to the pool"
    )
