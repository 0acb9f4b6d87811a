"""What a segment may not be: a table a kind, in the kind's folder. core/test_bad_segments.py goes through them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.support.raw import RawSegment


class Faults(NamedTuple):
    """A sound segment, and what is wrong in which of its fields."""

    cls: Any
    make: Callable[[], Any]
    """A new queue "q", as sound as can be, for items of bytes."""
    item: bytes
    """One that it takes."""
    raw: type[RawSegment]
    fields: dict[str, list[Any]]
    """Field: values that it must not have, the checksum being right. Whoever wrote them may have meant them."""
    follows: dict[str, str]
    """Field: what else finds it. A size that is possible, but not the one that the rest was made for, shows there."""
    covered: dict[str, int]
    """Field: bits to change that nothing notices but the checksum."""


ANY_VALUE_CAN_BE = {"segment_id": 2, "boot_id": 2, "created_ns": 2, "creator_pid": 2, "checksum": 2}
