"""Which killed operation explains which gap: decided when all buckets are judged.

A killed put that took a position without publishing it leaves a tombstone: no consumer gets it, and none must. A killed
get may have taken an item that is in no other row. A gap's deadline never falls with its position, so the earliest
operation goes to the first gap: if that fails, no other way succeeds. Of an overwriting queue see ``overwriting``.
A redelivered item was first taken by a consumer that died, at an unknown time, so it leaves the order. It is committed
once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from queueduct.verification.check.operations import (
    NEVER,
    NEVER_FILLED,
    NEVER_PUT,
    NEVER_REACHED,
    Finding,
    Findings,
    sought,
)
from queueduct.verification.check.positions.boundaries import Extent
from queueduct.verification.check.positions.bucket import First, Gap
from queueduct.verification.check.positions.overwriting import unexplained_of
from queueduct.verification.check.witnesses import Lookup

__all__ = ["KilledOperation", "KilledOperations", "Settlement", "of_unmatched", "settle", "with_witnesses"]

KilledOperation = dict[str, Any]
"""A row of the record: a killed operation, or a redelivered item."""


def reader_of(row: KilledOperation) -> int:
    reader = row.get("reader")
    return -1 if reader is None else int(reader)


def known(row: KilledOperation) -> bool:
    return row["ticket"] is not None and row.get("reader") is not None


@dataclass
class KilledOperations:
    """The rows that no bucket has."""

    puts: list[KilledOperation] = field(default_factory=list)
    gets: list[KilledOperation] = field(default_factory=list)
    redelivered: list[KilledOperation] = field(default_factory=list)

    @classmethod
    def of(cls, rows: Iterable[KilledOperation]) -> KilledOperations:
        found = cls()
        for row in sorted(rows, key=lambda row: int(row["invoke_ns"])):
            if row["op"] == "put":
                found.puts.append(row)
            elif row.get("redelivered") and row["value"] is not None:
                found.redelivered.append(row)
            else:
                found.gets.append(row)
        return found

    def __bool__(self) -> bool:
        return bool(self.puts or self.gets or self.redelivered)

    def reads(self) -> list[tuple[int, int]]:
        """Returns the reader and the ticket of killed gets that have both."""
        return [(reader_of(row), int(row["ticket"])) for row in self.gets if known(row)]

    def put_invokes(self) -> list[int]:
        """Returns the invocations, in order."""
        return [int(row["invoke_ns"]) for row in self.puts]

    def of_reader(self, reader: int) -> KilledOperations:
        """Returns the gets of one reader; -1 if readers have no numbers."""
        mine = [[row for row in rows if reader_of(row) == reader] for rows in (self.gets, self.redelivered)]
        return KilledOperations(self.puts, *mine)


@dataclass
class Settlement:
    findings: Findings
    tombstones: int = 0
    gone_with_consumers: int = 0
    unmatched: list[KilledOperation] = field(default_factory=list)
    """Redelivered rows whose item no gap has: their values must be looked up."""


def settle(gaps: Sequence[Gap], firsts: Sequence[First], killed: KilledOperations, extent: Extent) -> Settlement:
    settlement = Settlement(Findings())
    merged = with_deadlines(gaps, firsts)
    put_gaps = [gap for gap in merged if gap.side == "put"]
    left = never_got(put_gaps, killed.puts, settlement.findings)
    without_put = {gap.position for gap in put_gaps if gap.witness is None}
    values = {gap.position: gap.value for gap in put_gaps}
    get_gaps = [
        gap if gap.value is not None else gap._replace(value=values.get(gap.position))
        for gap in merged
        if gap.side == "get" and gap.position not in without_put
    ]
    if extent.overwrites:
        blank = unclaimed(get_gaps, killed, settlement)
        missing = unexplained_of(put_gaps, blank, killed.puts, killed.gets, extent)
        settlement.gone_with_consumers = missing.taken
        for gap in missing.puts:
            report_never_put(gap, extent, settlement.findings)
        for gap in missing.gets:
            report_unexplained(gap, extent, settlement.findings)
    else:
        blank = [gap for gap in put_gaps if gap.witness is None]
        match(blank, left, lambda gap: report_never_put(gap, extent, settlement.findings))
        for reader in sorted({gap.reader for gap in get_gaps} | {reader_of(row) for row in killed.redelivered}):
            gaps_of_reader = [gap for gap in get_gaps if gap.reader == reader]
            fill_get_gaps(gaps_of_reader, killed.of_reader(reader), extent, settlement)
    settlement.tombstones = len(without_put & {gap.position for gap in merged if gap.side == "get"})
    return settlement


def with_deadlines(gaps: Sequence[Gap], firsts: Sequence[First]) -> list[Gap]:
    """Returns one gap for each side, position and reader, with its soonest deadline, in the order of positions."""
    merged: dict[tuple[str, int, int], Gap] = {}
    for gap in gaps:
        key = (gap.side, gap.reader, gap.position)
        twin = merged.get(key)
        if twin is not None:
            deadline, passed = min(twin.deadline, gap.deadline), min(twin.passed, gap.passed)
            by = min(twin.overwritten_by, gap.overwritten_by)
            gap = (twin if twin.witness else gap)._replace(deadline=deadline, passed=passed, overwritten_by=by)
        merged[key] = gap
    found = sorted(merged.values(), key=lambda gap: gap.position)
    soonest: dict[tuple[str, int], int] = {}
    later = sorted(firsts, key=lambda first: first.position)
    for number in range(len(found) - 1, -1, -1):
        gap = found[number]
        while later and later[-1].position > gap.position:
            first = later.pop()
            key_ = (first.answer, first.reader)
            soonest[key_] = min(soonest.get(key_, NEVER), first.deadline)
        answer = "full" if gap.side == "put" else "empty"
        found[number] = gap._replace(deadline=min(gap.deadline, soonest.get((answer, gap.reader), NEVER)))
    return found


def never_got(gaps: Sequence[Gap], killed: Sequence[KilledOperation], findings: Findings) -> list[KilledOperation]:
    """Returns the killed puts whose item was never got, and judges the others."""
    by_value = {row["value"]: row for row in killed}
    for gap in gaps:
        if gap.witness is None:
            continue
        row = by_value.pop(gap.value, None)
        if row is None or row["ticket"] not in (None, gap.position):
            findings.add("unput", "", gap.witness, None)
        elif int(row["invoke_ns"]) > gap.witness["return_ns"]:
            findings.add("fresh", "an item was got before its put was invoked", gap.witness, row)
        elif int(row["invoke_ns"]) > gap.deadline:
            behind = sought("anything", "return_ns", gap.deadline)
            findings.add("order", "a killed put came too late for its position", row, behind)
    return list(by_value.values())


def report_never_put(gap: Gap, extent: Extent, findings: Findings) -> None:
    before = sought("put", "ticket", gap.position - 1)
    if gap.position < max(extent.put_end, extent.get_end):
        behind = sought("item", "return_ns", gap.passed, since=gap.position + 1)
        findings.add("ticket", NEVER_PUT, behind, before)
    elif gap.position < extent.filled:
        assert extent.capacity is not None
        full = sought("full", "return_ns", gap.passed, since=gap.position + 1 - extent.capacity)
        findings.add("full", NEVER_FILLED, full, before)
    else:
        empty = sought("empty", "return_ns", gap.passed, since=gap.position + 1)
        findings.add("empty", NEVER_REACHED, empty, before)


def fill_get_gaps(gaps: list[Gap], killed: KilledOperations, extent: Extent, settlement: Settlement) -> None:
    blank = unclaimed(gaps, killed, settlement)
    lost: list[Gap] = []
    match(blank, [row for row in killed.gets if row["value"] is None], lost.append)
    settlement.gone_with_consumers += len(blank) - len(lost)
    for gap in lost:
        report_unexplained(gap, extent, settlement.findings)


def unclaimed(gaps: list[Gap], killed: KilledOperations, settlement: Settlement) -> list[Gap]:
    """Returns the gaps whose item was neither redelivered nor taken by a killed get that was invoked in time."""
    again: dict[Any, list[KilledOperation]] = {}
    for row in killed.redelivered:
        again.setdefault(row["value"], []).append(row)
    claimed: dict[Any, KilledOperation] = {}
    for row in killed.gets:
        if row["value"] is not None:
            claimed.setdefault(row["value"], row)
    blank = []
    for gap in gaps:
        if gap.value is not None and gap.value in again:
            check_redelivered(gap.witness, again.pop(gap.value), settlement.findings)
        elif not claims(claimed.get(gap.value), gap):
            blank.append(gap)
    settlement.unmatched += [row for rows in again.values() for row in rows]
    return blank


def claims(row: KilledOperation | None, gap: Gap) -> bool:
    return row is not None and row["ticket"] in (None, gap.position) and int(row["invoke_ns"]) <= gap.deadline


def check_redelivered(put: KilledOperation | None, rows: list[KilledOperation], findings: Findings) -> None:
    """Checks one redelivered item: committed at most once, not before its put, and at the position of its put."""
    committed = [row for row in rows if row["outcome"] == "ok"]
    for row in committed[1:]:
        findings.add("repeat", "a redelivered item was committed twice", row, committed[0])
    if put is None:
        return
    for row in committed:
        if row["return_ns"] < put["invoke_ns"]:
            findings.add("fresh", "an item was got before its put was invoked", row, put)
        if None not in (row["ticket"], put["ticket"]) and row["ticket"] != put["ticket"]:
            findings.add("ticket", "an item was got at another position than it was put at", row, put)


def match(gaps: list[Gap], killed: list[KilledOperation], report: Callable[[Gap], None]) -> None:
    """Gives each gap a killed operation, one with its ticket first. Reports gaps for which none is left."""
    by_ticket = {row["ticket"]: row for row in reversed(killed) if row["ticket"] is not None}
    others = iter([row for row in killed if row["ticket"] is None])
    candidate = next(others, None)
    for gap in gaps:
        named = by_ticket.get(gap.position)
        if named is not None and int(named["invoke_ns"]) <= gap.deadline:
            continue
        if candidate is None or int(candidate["invoke_ns"]) > gap.deadline:
            report(gap)
        else:
            candidate = next(others, None)


def report_unexplained(gap: Gap, extent: Extent, findings: Findings) -> None:
    put = put_of(gap)

    def behind(what: str) -> dict[str, Any]:
        return sought(what, "return_ns", gap.passed, since=gap.position + 1, reader=gap.reader)

    if gap.reader >= 0:
        findings.add("lost", "a reader passed over an item", put, behind("read"))
    elif gap.position < extent.get_end:
        findings.add("lost", "an item was never got, though one behind it was", put, behind("get"))
    elif gap.position < extent.empty_end:
        findings.add("lost", "an item was never got, though the queue was empty afterwards", put, behind("empty"))
        findings.add("empty", "empty was answered though an item had not been got", behind("empty"), put)
    elif gap.position < extent.full_end:
        findings.add("full", "full was answered at a head that was never reached", behind("full"), put)
    else:
        again = sought("put", "return_ns", gap.passed, since=gap.position + (extent.capacity or 0))
        findings.add("capacity", "an item was never got, though its room was used again", put, again)


def put_of(gap: Gap) -> dict[str, Any]:
    """Returns the put of a missing get. A killed put may not know its position."""
    if gap.witness:
        return gap.witness
    return sought("put", "ticket", gap.position) if gap.value is None else {"op": "put", "value": gap.value}


def with_witnesses(gaps: Sequence[Gap], lookup: Lookup) -> list[Gap]:
    """Looks up the puts of an overwriting queue's gaps, which are seen at another position than the item's."""
    known = {(gap.side, gap.position, gap.reader) for gap in gaps if gap.witness}
    blank = {gap.position for gap in gaps if gap.side == "get" and not gap.witness}
    blank -= {position for side, position, _ in known if side == "get"}
    if not blank:
        return list(gaps)
    puts = {row["ticket"]: row for row in lookup({"ticket": blank}) if row["op"] == "put" and row["outcome"] == "ok"}
    return [
        gap._replace(value=puts[gap.position]["value"], witness=puts[gap.position])
        if gap.side == "get" and not gap.witness and gap.position in puts
        else gap
        for gap in gaps
    ]


def of_unmatched(settlement: Settlement, lookup: Lookup) -> list[Finding]:
    """Reports redelivered items without a gap: also got by another consumer, or after the last get, or never put."""
    findings = Findings()
    keys = {(int(row["value"]), reader_of(row)) for row in settlement.unmatched}
    rows = lookup({"value": {value for value, _ in keys}}) if keys else []
    for value, reader in sorted(keys):
        again = [row for row in settlement.unmatched if row["value"] == value and reader_of(row) == reader]
        puts = [row for row in rows if row["op"] == "put" and row["value"] == value]
        others = [row for row in rows if row["op"] == "get" and row["value"] == value and row["outcome"] == "ok"]
        others = [row for row in others if not row.get("redelivered") and reader_of(row) == reader]
        committed = [row for row in again if row["outcome"] == "ok"]
        if not puts and committed:
            findings.add("fresh", "an item was got that was never put", committed[0], None)
        elif others and committed:
            findings.add("repeat", "an item was delivered again after it had been got", committed[0], others[0])
        else:
            check_redelivered(puts[0] if puts else None, again, findings)
    return findings.rows()
