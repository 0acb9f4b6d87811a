"""What one scan counts: every bucket's extremes, and everything by which a row contradicts itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from queueduct.verification.check.operations import (
    EMPTY,
    FULL,
    GET,
    KILLED_GET,
    KILLED_PUT,
    NEVER,
    PUT,
    REDELIVERED,
    WEAK_EMPTY,
    WEAK_FULL,
)
from queueduct.verification.check.positions.boundaries import Summary
from queueduct.verification.check.verdict import HistoryError
from queueduct.verification.history.format import FARTHEST, History

__all__ = ["Counts", "code_of", "count"]

OUTCOMES = {("put", "ok"), ("put", "full"), ("put", "pending"), ("get", "ok"), ("get", "empty"), ("get", "pending")}


@dataclass
class Counts:
    """What the first pass saw."""

    operations: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    without_ticket: dict[int, int] = field(default_factory=dict)
    """Rows a code."""
    of_code: dict[int, int] = field(default_factory=dict)
    killed_with_nothing: int = 0
    torn: int = 0
    first_invoke: int = NEVER
    last_time: int = 0
    least_ticket: int = 0
    greatest_ticket: int = -1
    last_empty: int = -(2**63)
    summaries: list[Summary] = field(default_factory=list)
    readers: list[int] = field(default_factory=list)


def count(groups: Iterable[dict[str, Any]], history: History) -> Counts:
    """From the rows of each op, outcome, flag, reader and bucket."""
    counts = Counts()
    for group in groups:
        check_group(group, history)
        add_group(group, counts)
    if counts.operations != history.operations:
        raise HistoryError(
            f"every operation must be read: {counts.operations:,} were, of {history.operations:,}; "
            f"let nobody write to {history.directory}, and let Spark ignore no files"
        )
    return counts


def check_group(group: dict[str, Any], history: History) -> None:
    op, outcome, rows = group["op"], group["outcome"], group["rows"]
    name = f"{op} {outcome}"
    if (op, outcome) not in OUTCOMES:
        known = ", ".join(f"{op} {outcome}" for op, outcome in sorted(OUTCOMES))
        raise HistoryError(f"an operation must be one of {known}: {rows:,} rows are {name!r}")
    if group["invokes"] < rows or group["workers"] < rows:
        raise HistoryError(f"invoke_ns and worker must not be null: they are in rows of {name}")
    times = [group[name] for name in ("first_invoke", "invoke", "last_return") if group[name] is not None]
    for time in (min(times), max(times)):
        if abs(time) >= FARTHEST:
            raise HistoryError(
                f"times must be nearer to 0 than 2^62 ns: {time} in rows of {name}; use one monotonic clock"
            )
    if group["backwards"]:
        raise HistoryError(
            f"the clock must not go backwards: return_ns < invoke_ns in {group['backwards']:,} rows of {name}, "
            f"as of worker {group['backwards_worker']}; use one monotonic clock of one host"
        )
    if outcome == "pending" and group["returns"]:
        raise HistoryError(f"a pending operation has not returned: return_ns must be null in rows of {name}")
    if outcome != "pending" and group["returns"] < rows:
        raise HistoryError(f"return_ns is null for pending operations only: it is in rows of {name}")
    if (outcome == "ok" or (op == "put" and outcome == "pending")) and group["values"] < rows:
        raise HistoryError(f"value must not be null: it is in {rows - group['values']:,} rows of {name}")
    if history.kind == "events" and op == "get" and group["reader_key"] is None:
        raise HistoryError(f"gets of kind events must name their reader: reader is null in {rows:,} rows of {name}")
    if group["reader_key"] is not None and op == "get" and group["reader_key"] < 0:
        raise HistoryError(f"readers are numbered from 0 on: reader={group['reader_key']}")


def code_of(group: dict[str, Any]) -> int:
    op, outcome = group["op"], group["outcome"]
    if outcome == "pending":
        return KILLED_PUT if op == "put" else KILLED_GET
    if outcome == "ok":
        return PUT if op == "put" else REDELIVERED if group["redelivered"] else GET
    return {"empty": (EMPTY, WEAK_EMPTY), "full": (FULL, WEAK_FULL)}[outcome][group["weak"]]


def add_group(group: dict[str, Any], counts: Counts) -> None:
    found, rows = code_of(group), group["rows"]
    name = f"{group['op']} {group['outcome']}"
    counts.operations += rows
    counts.outcomes[name] = counts.outcomes.get(name, 0) + rows
    counts.of_code[found] = counts.of_code.get(found, 0) + rows
    counts.torn += group["torn"]
    counts.first_invoke = min(counts.first_invoke, group["first_invoke"])
    counts.last_time = max(counts.last_time, group["invoke"], group["last_return"] or group["invoke"])
    if group["op"] == "get" and group["reader_key"] is not None and group["reader_key"] not in counts.readers:
        counts.readers.append(group["reader_key"])
    if found == EMPTY:
        counts.last_empty = max(counts.last_empty, group["invoke"])
    if found == KILLED_GET:
        counts.killed_with_nothing += rows - group["values"]
    if group["bucket"] is None:
        counts.without_ticket[found] = counts.without_ticket.get(found, 0) + rows
        return
    counts.least_ticket = min(counts.least_ticket, group["first"])
    counts.greatest_ticket = max(counts.greatest_ticket, group["last"])
    if found in (PUT, GET, EMPTY, FULL, WEAK_EMPTY, WEAK_FULL):
        reader = -1 if group["reader_key"] is None or found == PUT else group["reader_key"]
        ret = NEVER if group["ret"] is None else group["ret"]
        extremes = (group["first"], group["last"], group["invoke"], ret)
        counts.summaries.append(Summary(group["bucket"], group["shifted"], found, reader, rows, *extremes))
