"""Operations as columns, and what the checks say of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "CODES",
    "KNOWN_AS",
    "NEVER",
    "NEVER_FILLED",
    "NEVER_PUT",
    "NEVER_REACHED",
    "START",
    "TWO_PUTS",
    "Code",
    "Columns",
    "Finding",
    "Findings",
    "Longs",
    "Rows",
    "grouped",
    "numbered",
    "sought",
]

Longs = NDArray[np.int64]

NEVER = 2**63 - 1
"""The return time of an operation that never returned."""
START = -(2**63)
"""A time before all others."""


class Code:
    """The kind and outcome of an operation. The conditions on positions apply to those up to WEAK_FULL."""

    PUT, GET, EMPTY, FULL, WEAK_EMPTY, WEAK_FULL, KILLED_PUT, KILLED_GET, REDELIVERED = range(9)
    EMPTIES, FULLS = (EMPTY, WEAK_EMPTY), (FULL, WEAK_FULL)
    PUTS, GETS = (PUT, KILLED_PUT), (GET, REDELIVERED)


CODES = ("put", "get", "empty", "full", "weak empty", "weak full")

TWO_PUTS = "two puts have one position"
NEVER_PUT = "no put has a position that the queue gave away"
NEVER_FILLED = "full was answered though so many items had never been put"
NEVER_REACHED = "empty was answered at a position that the queue had not reached"
LISTED = 100  # violations of one sentence that a bucket lists; the rest are counted


class Finding(NamedTuple):
    """A violation: the wrong operation, and the one that contradicts it."""

    rule: str
    why: str
    subject: dict[str, Any]
    other: dict[str, Any] | None
    number: int = 1
    """How many findings of this rule and sentence it counts: more than 1 only after the last listed one."""


class Columns:
    """A table of arrays of one length, one for each field of a dataclass."""

    def __len__(self) -> int:
        return len(next(iter(vars(self).values())))

    def where(self, chosen: Any) -> Self:
        """Returns the chosen rows: a mask, a slice or indices."""
        return type(self)(*(column[chosen] for column in vars(self).values()))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Returns the rows of all parts, in order."""
        if len(parts) == 1:
            return parts[0]
        return cls(*map(np.concatenate, zip(*(vars(part).values() for part in parts), strict=True)))

    def sliced(self, keys: NDArray[Any]) -> Iterator[tuple[int, Self]]:
        """Yields the rows of each key, in the order that they have here."""
        if not len(keys):
            return
        if keys.min() == keys.max():
            yield int(keys[0]), self
            return
        order, begins = grouped(keys)
        for rows in np.split(order, begins[1:]):
            yield int(keys[rows[0]]), self.where(rows)


def grouped(keys: NDArray[Any]) -> tuple[Longs, Longs]:
    """Returns the rows in a stable order of their keys, and where in that order each key begins."""
    least = keys.min(initial=0)
    if keys.max(initial=0) - least < 1 << 16:
        keys = (keys - least).astype(np.uint16)  # numpy sorts uint16 in linear time
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    return order, np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)])


def numbered(*keys: NDArray[Any]) -> Longs:
    """Returns a number for each combination of keys."""
    found = np.zeros(len(keys[0]), np.int64)
    span = 1
    for key in keys:
        least, greatest = int(key.min()), int(key.max())
        if greatest - least >= 1 << 30:
            distinct, key = np.unique(key, return_inverse=True)
            least, greatest = 0, len(distinct) - 1
        if span * (greatest - least + 1) >= 1 << 62:
            distinct, found = np.unique(found, return_inverse=True)
            span = len(distinct)
        found = found * (greatest - least + 1) + (key.astype(np.int64) - least)
        span *= greatest - least + 1
    return found


@dataclass(frozen=True)
class Rows(Columns):
    """Operations."""

    code: NDArray[np.int8]
    ticket: Longs
    """START for null."""
    value: Longs
    invoke: Longs
    ret: Longs
    """NEVER for null."""
    worker: Longs
    reader: Longs
    """-1 for null."""

    @classmethod
    def none(cls) -> Rows:
        return cls(np.empty(0, np.int8), *(np.empty(0, np.int64) for _ in range(6)))

    def witness(self, row: int) -> dict[str, Any]:
        """Returns one row, for a message."""
        code = int(self.code[row])
        found: dict[str, Any] = {
            "op": "put" if code in (Code.PUT, Code.FULL, Code.WEAK_FULL) else "get",
            "outcome": "ok" if code in (Code.PUT, Code.GET) else CODES[code].removeprefix("weak "),
            "worker": int(self.worker[row]),
            "value": int(self.value[row]) if code in (Code.PUT, Code.GET) else None,
            "ticket": None if self.ticket[row] == START else int(self.ticket[row]),
            "invoke_ns": int(self.invoke[row]),
            "return_ns": None if self.ret[row] == NEVER else int(self.ret[row]),
        }
        if self.reader[row] >= 0:
            found["reader"] = int(self.reader[row])
        return found


KNOWN_AS: dict[str, dict[str, Any]] = {
    "put": {"op": "put", "outcome": "ok"},
    "get": {"op": "get", "outcome": "ok"},
    "empty": {"op": "get", "outcome": "empty"},
    "full": {"op": "put", "outcome": "full"},
    "item": {"outcome": "ok"},
    "read": {"op": "get"},
    "anything": {},
}


def sought(
    what: str, which: str, key: Any, *, since: int | None = None, until: int | None = None, reader: int = -1
) -> dict[str, Any]:
    """Returns a witness that may be in another bucket, to be looked up at the end by one column, usually a time.

    Several rows may have the same time, and those of a batch always do. So its kind, its position and its reader are
    part of it, too. Nothing waits for the invocation of a weak answer.
    """
    found = dict(KNOWN_AS[what], **{which: int(key)})
    if what in ("empty", "full") and which != "return_ns":
        found["weak"] = False
    bounds = {"since": since, "until": until, "reader": None if reader < 0 else reader}
    return found | {name: int(bound) for name, bound in bounds.items() if bound is not None}


class Findings:
    """A list of findings that only counts further ones of a sentence when it has enough."""

    def __init__(self) -> None:
        self.listed: list[Finding] = []
        self.counts: dict[tuple[str, str], int] = {}

    def room_for(self, rule: str, why: str, found: int) -> int:
        """Counts ``number`` findings, and returns how many of them to list."""
        before = self.counts.get((rule, why), 0)
        self.counts[rule, why] = before + found
        return max(0, min(found, LISTED - before))

    def add(self, rule: str, why: str, subject: dict[str, Any], other: dict[str, Any] | None) -> None:
        if self.room_for(rule, why, 1):
            self.listed.append(Finding(rule, why, subject, other))

    def rows(self) -> list[Finding]:
        """Returns the listed findings, and one for each sentence that has more."""
        listed: dict[tuple[str, str], int] = {}
        for finding in self.listed:
            listed[finding[:2]] = listed.get(finding[:2], 0) + 1
        more = [
            Finding(rule, why, {}, None, count - listed.get((rule, why), 0))
            for (rule, why), count in self.counts.items()
            if count > listed.get((rule, why), 0)
        ]
        return self.listed + more
