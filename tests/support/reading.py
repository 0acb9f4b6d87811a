"""Whoever gets from a queue, whatever its kind."""

from __future__ import annotations

from typing import Any


def reader_of(q: Any) -> Any:
    """Who gets from it: the queue itself, or a reader that sees all from now on."""
    return q.subscribe() if hasattr(q, "subscribe") else q
