"""From a record to its verdict: which checks it gets, in which order. Where the rows are does not matter here."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from queueduct.verification.check.conclusions import disproved, proved
from queueduct.verification.check.counts import Counts, count
from queueduct.verification.check.operations import (
    EMPTY,
    FULL,
    GET,
    KILLED_GET,
    KILLED_PUT,
    KNOWN_AS,
    NEVER_FILLED,
    NEVER_PUT,
    NEVER_REACHED,
    PUT,
    REDELIVERED,
    WEAK_EMPTY,
    WEAK_FULL,
    Finding,
    Rows,
)
from queueduct.verification.check.positions import log, queue
from queueduct.verification.check.positions.boundaries import SHIFTED, Carry, Shape, carries_of, shape_of
from queueduct.verification.check.positions.kills import Settlement, Specials, of_unmatched, settle, with_witnesses
from queueduct.verification.check.positions.sides import Found
from queueduct.verification.check.verdict import HistoryError, Verdict
from queueduct.verification.check.witnesses import Row, Wanted, explained, not_unique
from queueduct.verification.history.format import FARTHEST, LIMITED, History

__all__ = ["Table", "decide"]

LISTED = 100
MOST_SPECIALS = 5_000_000
MOST_BARE_BUCKETS = 1000
ANSWERS = (EMPTY, WEAK_EMPTY)

Say = Callable[[str], None]


class Table(Protocol):
    """The rows of a record, and what must be asked of them."""

    def groups(self, width: int) -> list[Row]:
        """One row for each op, outcome, flag, reader and bucket, with its extremes."""
        ...

    def lookup(self, wanted: Wanted) -> list[Row]:
        """The rows that have one of the wanted values in one of the columns."""
        ...

    def examples(self, what: str, most: int) -> list[Row]:
        """Rows that are wrong by themselves: torn, full, negative, beyond."""
        ...

    def specials(self) -> list[Row]:
        """The rows of killed operations and of redelivered items."""
        ...

    def judge_tickets(self, shape: Shape, carries: dict[int, Carry]) -> Found:
        """Every bucket of positions that has rows."""
        ...

    def value_put_twice(self, killed: Sequence[int]) -> int | None:
        """One that is, if one is; after the judgement of the positions. ``killed``: those of puts that were killed."""
        ...

    def judge_times(self, counts: Counts, width: int, progress: Say) -> list[Finding]:
        """Every bucket of time."""
        ...


def decide(history: History, table: Table, width: int, progress: Say) -> Verdict:
    began = time.monotonic()
    progress("first pass: counts, and the extremes of every bucket")
    counts = count(table.groups(width), history)
    by_ticket = has_tickets(counts)
    is_limited = history.kind in LIMITED and history.capacity is not None
    without = counts.without_ticket.get(EMPTY, 0) + is_limited * counts.without_ticket.get(FULL, 0)
    by_time = not by_ticket or without > 0
    if by_ticket and history.kind == "overwriting" and history.capacity is None:
        raise HistoryError(
            "the ticket check of kind overwriting needs the capacity: it is null in manifest.json; "
            "write it there, or leave the tickets out and get the order check"
        )
    findings = impossible(history, counts, table)
    settlement = None
    if counts.least_ticket < 0 or counts.greatest_ticket >= FARTHEST:
        by_time = False
    elif by_ticket:
        progress("second pass: the conditions of every position")
        found, settlement = judge_tickets(history, counts, table, width)
        findings += found
    if by_time:
        findings += table.judge_times(counts, width, progress)
    progress("looking up the witnesses")
    violations, by_rule = explained(findings, table.lookup)
    return Verdict(
        kind=history.kind,
        operations=counts.operations,
        proved=(disproved if by_rule else proved)(history, counts, by_ticket, by_time, settlement),
        violations=violations,
        counts=by_rule,
        outcomes=dict(sorted(counts.outcomes.items())),
        check=("broadcast" if history.kind == "events" else "tickets") if by_ticket else "order",
        seconds=round(time.monotonic() - began, 3),
    )


def has_tickets(counts: Counts) -> bool:
    """Every put and get that returned, or, where there is none, some answer."""
    if counts.without_ticket.get(PUT, 0) or counts.without_ticket.get(GET, 0):
        return False
    codes = (PUT, GET, EMPTY, FULL, WEAK_EMPTY, WEAK_FULL)
    return any(counts.of_code.get(code, 0) > counts.without_ticket.get(code, 0) for code in codes)


def impossible(history: History, counts: Counts, table: Table) -> list[Finding]:
    """What one row alone shows."""
    full = counts.outcomes.get("put full", 0) if history.kind == "unbounded" else 0
    found: list[Finding] = []
    for rule, why, what, number in (
        ("torn", "an item's content contradicts itself", "torn", counts.torn),
        ("full", "full was answered by a queue without a limit", "full", full),
        ("ticket", "a position is before the first", "negative", int(counts.least_ticket < 0)),
        ("ticket", "a position is beyond 2^62", "beyond", int(counts.greatest_ticket >= FARTHEST)),
    ):
        if number:
            rows = table.examples(what, LISTED)
            found += [Finding(rule, why, row, None) for row in rows]
            if number > len(rows):
                found.append(Finding(rule, why, {}, None, number - len(rows)))
    return found


def judge_tickets(history: History, counts: Counts, table: Table, width: int) -> tuple[list[Finding], Settlement]:
    capacity = None if history.kind in ("events", "unbounded") else history.capacity
    specials = Specials.of(all_specials(counts, table))
    summaries = [each for each in counts.summaries if capacity is not None or each.code in (PUT, GET, *ANSWERS)]
    overwrites = history.kind == "overwriting"
    shape = shape_of(summaries, capacity, width, overwrites, specials.reads(), specials.put_invokes())
    last = shape.buckets[-1]
    there = {each.bucket for each in summaries}
    if capacity is not None:
        there |= {each.shifted for each in summaries if each.code in SHIFTED and each.shifted <= last}
    findings, holes, firsts = table.judge_tickets(shape, carries_of(summaries, sorted(there)))
    doubled = table.value_put_twice([int(row["value"]) for row in specials.puts])
    if doubled is not None:
        raise not_unique(doubled, [row for row in table.lookup({"value": {doubled}}) if row["op"] == "put"])
    bare = len(shape.buckets) - len(there)
    if bare > MOST_BARE_BUCKETS:
        far = far_away(shape)
        findings += [far, far._replace(subject={}, number=bare * width - 1)]
    elif bare:
        missing = [bucket for bucket in shape.buckets if bucket not in there]
        carries = carries_of(summaries, missing)
        module = log if history.kind == "events" else queue
        for bucket in missing:
            judged = module.judge(Rows.none(), bucket, carries[bucket], shape)
            findings += judged.findings.rows()
            holes += judged.holes
            firsts += judged.firsts
    known = with_witnesses(holes, table.lookup) if specials else holes
    settlement = settle(known, firsts, specials, shape)
    return findings + settlement.findings.rows() + of_unmatched(settlement, table.lookup), settlement


def far_away(shape: Shape) -> Finding:
    """Somebody is far behind everybody else: no positions are listed then."""
    for end, rule, why, witness in (
        (shape.put_end, "ticket", NEVER_PUT, dict(KNOWN_AS["put"], ticket=shape.put_end - 1)),
        (shape.get_end, "ticket", NEVER_PUT, dict(KNOWN_AS["get"], ticket=shape.get_end - 1)),
        (shape.filled, "full", NEVER_FILLED, dict(KNOWN_AS["full"], ticket=shape.full_end)),
    ):
        if end == shape.puts_needed:
            return Finding(rule, why, witness, None)
    return Finding("empty", NEVER_REACHED, dict(KNOWN_AS["empty"], ticket=shape.empty_end), None)


def all_specials(counts: Counts, table: Table) -> list[dict[str, Any]]:
    """As many as there were kills: they are matched one by one."""
    number = sum(counts.of_code.get(code, 0) for code in (KILLED_PUT, KILLED_GET, REDELIVERED))
    if number > MOST_SPECIALS:
        raise HistoryError(
            f"killed and redelivered operations are matched one by one: {number:,} of them are too many; "
            f"at most {MOST_SPECIALS:,}"
        )
    return table.specials() if number else []
