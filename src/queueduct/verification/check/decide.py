"""The verdict on a record: which checks it gets, in which order."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from queueduct.verification.check.conclusions import disproved, proved
from queueduct.verification.check.counts import Counts, count
from queueduct.verification.check.operations import (
    KNOWN_AS,
    NEVER_FILLED,
    NEVER_PUT,
    NEVER_REACHED,
    Code,
    Finding,
    Rows,
)
from queueduct.verification.check.part import Part
from queueduct.verification.check.positions import judge_bucket, judge_positions
from queueduct.verification.check.positions.boundaries import SHIFTED, Extent, boundaries_of, extent_of
from queueduct.verification.check.positions.kills import (
    KilledOperations,
    Settlement,
    of_unmatched,
    settle,
    with_witnesses,
)
from queueduct.verification.check.table import Table
from queueduct.verification.check.times import judge_times
from queueduct.verification.check.verdict import Verdict
from queueduct.verification.check.witnesses import Row, Wanted, explained, not_unique
from queueduct.verification.history.format import FARTHEST, LIMITED, History, HistoryError

__all__ = ["decide"]

LISTED = 100
LOOKUP_LIMIT = 100_000
MOST_KILLED = 5_000_000
MOST_BARE_BUCKETS = 1000

Say = Callable[[str], None]


def decide(history: History, table: Table, width: int, progress: Say) -> Verdict:
    began = time.monotonic()
    progress("first pass: counts, and the extremes of every bucket")
    capacity = 0 if history.kind == "events" else history.capacity or 0
    counts = count(table.each(partial(Part.groups, width=width, capacity=capacity)), history)
    by_ticket = has_tickets(counts)
    is_limited = history.kind in LIMITED and history.capacity is not None
    without = counts.without_ticket.get(Code.EMPTY, 0) + is_limited * counts.without_ticket.get(Code.FULL, 0)
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
        findings += judge_times(table, history, counts, width, progress)
    progress("looking up the witnesses")
    violations, by_rule = explained(findings, partial(lookup, table))
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
    """Returns true if every put and get that returned has a ticket; without any, if some answer has one."""
    if counts.without_ticket.get(Code.PUT, 0) or counts.without_ticket.get(Code.GET, 0):
        return False
    codes = (Code.PUT, Code.GET, Code.EMPTY, Code.FULL, Code.WEAK_EMPTY, Code.WEAK_FULL)
    return any(counts.of_code.get(code, 0) > counts.without_ticket.get(code, 0) for code in codes)


def impossible(history: History, counts: Counts, table: Table) -> list[Finding]:
    """Returns the findings that one row alone shows."""
    full = counts.outcomes.get("put full", 0) if history.kind == "unbounded" else 0
    found: list[Finding] = []
    for rule, why, what, number in (
        ("torn", "an item's content contradicts itself", "torn", counts.torn),
        ("full", "full was answered by a queue without a limit", "full", full),
        ("ticket", "a position is before the first", "negative", int(counts.least_ticket < 0)),
        ("ticket", "a position is beyond 2^62", "beyond", int(counts.greatest_ticket >= FARTHEST)),
    ):
        if number:
            rows = table.each(partial(Part.examples, what=what, most=LISTED))[:LISTED]
            found += [Finding(rule, why, row, None) for row in rows]
            if number > len(rows):
                found.append(Finding(rule, why, {}, None, number - len(rows)))
    return found


def judge_tickets(history: History, counts: Counts, table: Table, width: int) -> tuple[list[Finding], Settlement]:
    capacity = None if history.kind in ("events", "unbounded") else history.capacity
    killed = KilledOperations.of(all_killed(counts, table))
    summaries = [each for each in counts.summaries if capacity is not None or each.code not in Code.FULLS]
    overwrites = history.kind == "overwriting"
    extent = extent_of(summaries, capacity, width, overwrites, killed.reads(), killed.put_invokes())
    last = extent.buckets[-1]
    there = {each.bucket for each in summaries}
    if capacity is not None:
        there |= {each.shifted for each in summaries if each.code in SHIFTED and each.shifted <= last}
    is_log = history.kind == "events"
    judged = judge_positions(table, is_log, extent, boundaries_of(summaries, sorted(there)), summaries)
    if judged.put_twice:
        doubled = min(judged.put_twice)
        raise not_unique(doubled, [row for row in lookup(table, {"value": {doubled}}) if row["op"] == "put"])
    findings, gaps, firsts, _ = judged
    bare = len(extent.buckets) - len(there)
    if bare > MOST_BARE_BUCKETS:
        far = far_away(extent)
        findings += [far, far._replace(subject={}, number=bare * width - 1)]
    elif bare:
        missing = [bucket for bucket in extent.buckets if bucket not in there]
        boundaries = boundaries_of(summaries, missing)
        for bucket in missing:
            found = judge_bucket(Rows.none(), is_log, bucket, boundaries[bucket], extent)
            findings += found.findings
            gaps += found.gaps
            firsts += found.firsts
    known = with_witnesses(gaps, partial(lookup, table)) if killed else gaps
    settlement = settle(known, firsts, killed, extent)
    return findings + settlement.findings.rows() + of_unmatched(settlement, partial(lookup, table)), settlement


def lookup(table: Table, wanted: Wanted) -> list[Row]:
    """Returns the rows that have one of the wanted values in one of the columns."""
    return table.each(partial(Part.lookup, wanted=wanted, most=LOOKUP_LIMIT))


def far_away(extent: Extent) -> Finding:
    """Returns the finding of an operation whose position is too far from all others to list those between."""
    for end, rule, why, witness in (
        (extent.put_end, "ticket", NEVER_PUT, dict(KNOWN_AS["put"], ticket=extent.put_end - 1)),
        (extent.get_end, "ticket", NEVER_PUT, dict(KNOWN_AS["get"], ticket=extent.get_end - 1)),
        (extent.filled, "full", NEVER_FILLED, dict(KNOWN_AS["full"], ticket=extent.full_end)),
    ):
        if end == extent.puts_needed:
            return Finding(rule, why, witness, None)
    return Finding("empty", NEVER_REACHED, dict(KNOWN_AS["empty"], ticket=extent.empty_end), None)


def all_killed(counts: Counts, table: Table) -> list[dict[str, Any]]:
    """Returns the rows of killed and redelivered operations. Raises if they are too many to match one by one."""
    number = sum(counts.of_code.get(code, 0) for code in (Code.KILLED_PUT, Code.KILLED_GET, Code.REDELIVERED))
    if number > MOST_KILLED:
        raise HistoryError(
            f"killed and redelivered operations are matched one by one: {number:,} of them are too many; "
            f"at most {MOST_KILLED:,}"
        )
    return table.each(Part.killed) if number else []
