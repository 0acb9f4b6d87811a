"""The counts of one scan: the extremes of every bucket, and the rows that contradict themselves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from queueduct.verification.check.operations import NEVER, START, Code
from queueduct.verification.check.part import OUTCOMES
from queueduct.verification.check.positions.boundaries import Summary
from queueduct.verification.history.format import History, HistoryError

__all__ = ["Counts", "count"]


@dataclass
class Counts:
    """The counts of the first pass."""

    operations: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    without_ticket: dict[int, int] = field(default_factory=dict)
    """The number of rows of each code."""
    of_code: dict[int, int] = field(default_factory=dict)
    killed_with_nothing: int = 0
    torn: int = 0
    first_invoke: int = NEVER
    last_time: int = 0
    least_ticket: int = 0
    greatest_ticket: int = -1
    last_empty: dict[int, int] = field(default_factory=dict)
    """For each reader the latest invocation of an empty answer; START if it got none. Reader -1 if none is named."""
    first_answer: dict[int, int] = field(default_factory=dict)
    """For each reader the soonest return of a get."""
    summaries: list[Summary] = field(default_factory=list)


def count(groups: Iterable[dict[str, Any]], history: History) -> Counts:
    """Makes the counts from the groups of every part: see ``Part.groups``."""
    counts = Counts()
    for group in groups:
        add_group(group, counts)
    if counts.operations != history.operations:
        raise HistoryError(
            f"every operation must be read: {counts.operations:,} were, of {history.operations:,}; "
            f"let nothing write to {history.directory} while it is checked"
        )
    return counts


def add_group(group: dict[str, Any], counts: Counts) -> None:
    found, rows, name = group["code"], group["rows"], OUTCOMES[group["outcome"]]
    reader = -1 if name.startswith("put") else group["reader"]
    counts.operations += rows
    counts.outcomes[name] = counts.outcomes.get(name, 0) + rows
    counts.of_code[found] = counts.of_code.get(found, 0) + rows
    counts.torn += group["torn"]
    counts.first_invoke = min(counts.first_invoke, group["first_invoke"])
    counts.last_time = max(counts.last_time, group["invoke"], group["last_return"])
    if name.startswith("get"):
        last_empty = group["invoke"] if found == Code.EMPTY else START
        counts.last_empty[reader] = max(counts.last_empty.get(reader, START), last_empty)
        counts.first_answer[reader] = min(counts.first_answer.get(reader, NEVER), group["ret"])
    if found == Code.KILLED_GET:
        counts.killed_with_nothing += rows - group["values"]
    if not group["has_ticket"]:
        counts.without_ticket[found] = counts.without_ticket.get(found, 0) + rows
        return
    counts.least_ticket = min(counts.least_ticket, group["first"])
    counts.greatest_ticket = max(counts.greatest_ticket, group["last"])
    if found <= Code.WEAK_FULL:
        extremes = (group["first"], group["last"], group["invoke"], group["ret"])
        counts.summaries.append(Summary(group["bucket"], group["shifted"], found, reader, rows, *extremes))
