"""What a look at the machine has found."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Finding", "fail", "ok", "warn"]


class Finding(NamedTuple):
    """One line of ``queueduct doctor``."""

    state: str
    """ok, warn or fail."""
    what: str
    found: str
    remedy: str | None = None


def ok(what: str, found: str) -> Finding:
    return Finding("ok", what, found)


def warn(what: str, found: str, remedy: str) -> Finding:
    return Finding("warn", what, found, remedy)


def fail(what: str, found: str, remedy: str) -> Finding:
    return Finding("fail", what, found, remedy)
