"""Subclasses of Queue that override how items are kept, as those of the standard library's do."""

import queue
import sys
from typing import Any

__all__ = ["WithHooks"]

HOOKS = ("_init", "_put", "_get", "_qsize")
CALLS = ("put", "get", "put_nowait", "get_nowait", "qsize", "empty", "full", "join", "task_done")


class WithHooks:
    """Gives a subclass that has a hook of its own the standard library's calls, which call the hooks."""

    __slots__ = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if not any(name in vars(cls) for name in HOOKS):
            return
        cls._initialise = queue.Queue.__init__  # type: ignore[attr-defined]
        for name in (*CALLS, "shutdown") if sys.version_info >= (3, 13) else CALLS:
            if name not in vars(cls):
                setattr(cls, name, vars(queue.Queue)[name])
