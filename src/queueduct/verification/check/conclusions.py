"""Sentences on what a verdict proves and what it does not."""

from __future__ import annotations

from queueduct.verification.check.counts import Counts
from queueduct.verification.check.operations import Code
from queueduct.verification.check.positions.kills import Settlement
from queueduct.verification.history.format import LIMITED, History

__all__ = ["disproved", "proved"]


def proved(
    history: History, counts: Counts, by_ticket: bool, by_time: bool, settlement: Settlement | None
) -> list[str]:
    sentences = of_tickets(history) if by_ticket else of_times(history)
    if by_ticket and by_time:
        number = counts.without_ticket.get(Code.EMPTY, 0)
        sentences.append(f"{number:,} empty answers without a ticket: each was possible by the order of times")
    unproved = counts.without_ticket.get(Code.FULL, 0) + counts.without_ticket.get(Code.WEAK_FULL, 0)
    if unproved and history.kind != "unbounded":
        sentences.append(f"not proved: {unproved:,} full answers without a ticket")
    weak = counts.without_ticket.get(Code.WEAK_EMPTY, 0)
    if not by_ticket:
        weak = counts.of_code.get(Code.WEAK_EMPTY, 0)
    if weak:
        sentences.append(f"not proved: {weak:,} weak empty answers without a ticket")
    if settlement is not None and settlement.tombstones:
        sentences.append(
            f"{settlement.tombstones:,} positions belong to producers that were killed before they published"
        )
    if settlement is not None and settlement.gone_with_consumers:
        number = settlement.gone_with_consumers
        sentences.append(f"{number:,} items may have gone with consumers that were killed: each has one that could")
    return sentences


def disproved(
    history: History, counts: Counts, by_ticket: bool, by_time: bool, settlement: Settlement | None
) -> list[str]:
    """For a history that failed: nothing is proved, but the sentences name what was not checked."""
    by = "the order of the tickets, against the times" if by_ticket else "the order of the times"
    sentences = [f"checked, and found wrong: {by}"]
    held = proved(history, counts, by_ticket, by_time, settlement)
    return sentences + [sentence for sentence in held if sentence.startswith("not proved")]


def of_tickets(history: History) -> list[str]:
    if history.kind == "events":
        return [
            "linearizable as a log, in the order of the tickets",
            "every reader got every item from its first position on, once, in the order of the tickets",
            "every empty answer came when its reader had got everything",
        ]
    found = ["linearizable, in the order of the tickets: first in, first out, every item got at most once"]
    if history.kind == "overwriting":
        return [
            *found,
            f"never more than {history.capacity:,} items, and none passed over that had not been overwritten",
            "every empty answer came when the queue was empty",
        ]
    if history.capacity is not None:
        found.append(f"never more than {history.capacity:,} items, and every full answer came when there were so many")
    elif history.kind not in ("unbounded",):
        found.append("not proved: capacity, and when the queue may answer that it is full")
    return [*found, "no item lost, and every empty answer came when the queue was empty"]


def of_times(history: History) -> list[str]:
    if history.kind == "events":
        return [
            "for each reader alone: no item before its put, none twice, none passed over, none overtaken",
            "not proved: that all readers see one order; that needs tickets",
        ]
    if history.kind == "overwriting":
        return [
            "first in, first out, among the items that were got, every item got at most once",
            "not proved: capacity, and that what was not got had been overwritten; that needs tickets",
        ]
    found = ["linearizable as a queue without a limit: first in, first out, every item got at most once, none lost"]
    if history.kind in LIMITED or history.capacity is not None:
        found.append("not proved: capacity, and when the queue may answer that it is full; that needs tickets")
    return found
