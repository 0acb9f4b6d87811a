"""Spark finds modules with names like this one by itself: ``format("queueduct")`` needs no registration.

Imports come with the first use: the daemon beside this must have no threads, and numpy starts some.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from queueduct.spark.datasource import QueueductSource as DefaultSource

__all__ = ["DefaultSource"]


def __getattr__(name: str) -> type[DefaultSource]:
    if name != "DefaultSource":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from queueduct.spark.datasource import QueueductSource

    return QueueductSource
