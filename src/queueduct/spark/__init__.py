"""Spark: the data source and sink "queueduct", a session to start with, and pipelines. Needs queueduct[spark]."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from queueduct.spark.sessions import session

__all__ = ["session"]


def __getattr__(name: str) -> Any:
    """Imports late: Spark takes a second to import, and the help of the command line must not wait for it."""
    if name == "session":
        from queueduct.spark.sessions import session

        return session
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
