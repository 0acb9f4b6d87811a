"""Which killed operation explains which hole: settled when every bucket has spoken.

A killed put that took a position without publishing it leaves a tombstone: nobody gets it, and nobody must. A killed
get may have taken an item that nobody has seen since. A hole's deadline never falls with its position, so the earliest
operation goes to the first hole: if that fails, no other way succeeds. Of an overwriting queue see ``overwriting``.
Redelivered items were taken by somebody who died; when is not known, so they leave the order. Each is committed once.
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
from queueduct.verification.check.positions.boundaries import Shape
from queueduct.verification.check.positions.overwriting import unexplained_of
from queueduct.verification.check.positions.sides import First, Hole
from queueduct.verification.check.witnesses import Lookup

__all__ = ["Settlement", "Special", "Specials", "of_unmatched", "settle", "with_witnesses"]

Special = dict[str, Any]
"""A row as in the record: of a killed operation, or of a redelivered item."""


def reader_of(row: Special) -> int:
    reader = row.get("reader")
    return -1 if reader is None else int(reader)


def known(row: Special) -> bool:
    return row["ticket"] is not None and row.get("reader") is not None


@dataclass
class Specials:
    """The rows that the buckets do not see."""

    puts: list[Special] = field(default_factory=list)
    gets: list[Special] = field(default_factory=list)
    redelivered: list[Special] = field(default_factory=list)

    @classmethod
    def of(cls, rows: Iterable[Special]) -> Specials:
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
        """Reader and ticket, where both are known."""
        return [(reader_of(row), int(row["ticket"])) for row in self.gets if known(row)]

    def put_invokes(self) -> list[int]:
        """In order."""
        return [int(row["invoke_ns"]) for row in self.puts]

    def of_reader(self, reader: int) -> Specials:
        """The gets of one; -1 where nobody has a number."""
        mine = [[row for row in rows if reader_of(row) == reader] for rows in (self.gets, self.redelivered)]
        return Specials(self.puts, *mine)


@dataclass
class Settlement:
    findings: Findings
    tombstones: int = 0
    gone_with_consumers: int = 0
    unmatched: list[Special] = field(default_factory=list)
    """Redelivered rows whose item no hole has: somebody must look their values up."""


def settle(holes: Sequence[Hole], firsts: Sequence[First], specials: Specials, shape: Shape) -> Settlement:
    settlement = Settlement(Findings())
    merged = with_deadlines(holes, firsts)
    put_holes = [hole for hole in merged if hole.side == "put"]
    left = of_nobody(put_holes, specials.puts, settlement.findings)
    without_put = {hole.position for hole in put_holes if hole.witness is None}
    values = {hole.position: hole.value for hole in put_holes}
    get_holes = [
        hole if hole.value is not None else hole._replace(value=values.get(hole.position))
        for hole in merged
        if hole.side == "get" and hole.position not in without_put
    ]
    if shape.overwrites:
        blank = unclaimed(get_holes, specials, settlement)
        missing = unexplained_of(put_holes, blank, specials.puts, specials.gets, shape)
        settlement.gone_with_consumers = missing.taken
        for hole in missing.puts:
            report_never_put(hole, shape, settlement.findings)
        for hole in missing.gets:
            report_unexplained(hole, shape, settlement.findings)
    else:
        blank = [hole for hole in put_holes if hole.witness is None]
        match(blank, left, lambda hole: report_never_put(hole, shape, settlement.findings))
        for reader in sorted({hole.reader for hole in get_holes} | {reader_of(row) for row in specials.redelivered}):
            holes_of_reader = [hole for hole in get_holes if hole.reader == reader]
            fill_get_holes(holes_of_reader, specials.of_reader(reader), shape, settlement)
    settlement.tombstones = len(without_put & {hole.position for hole in merged if hole.side == "get"})
    return settlement


def with_deadlines(holes: Sequence[Hole], firsts: Sequence[First]) -> list[Hole]:
    """One a side, position and reader, with the soonest of its deadlines, in order of their positions."""
    merged: dict[tuple[str, int, int], Hole] = {}
    for hole in holes:
        key = (hole.side, hole.reader, hole.position)
        twin = merged.get(key)
        if twin is not None:
            deadline, passed = min(twin.deadline, hole.deadline), min(twin.passed, hole.passed)
            by = min(twin.overwritten_by, hole.overwritten_by)
            hole = (twin if twin.witness else hole)._replace(deadline=deadline, passed=passed, overwritten_by=by)
        merged[key] = hole
    found = sorted(merged.values(), key=lambda hole: hole.position)
    soonest: dict[tuple[str, int], int] = {}
    later = sorted(firsts, key=lambda first: first.position)
    for number in range(len(found) - 1, -1, -1):
        hole = found[number]
        while later and later[-1].position > hole.position:
            first = later.pop()
            key_ = (first.answer, first.reader)
            soonest[key_] = min(soonest.get(key_, NEVER), first.deadline)
        answer = "full" if hole.side == "put" else "empty"
        found[number] = hole._replace(deadline=min(hole.deadline, soonest.get((answer, hole.reader), NEVER)))
    return found


def of_nobody(holes: Sequence[Hole], killed: Sequence[Special], findings: Findings) -> list[Special]:
    """The killed puts whose item nobody got; the others are judged."""
    by_value = {row["value"]: row for row in killed}
    for hole in holes:
        if hole.witness is None:
            continue
        row = by_value.pop(hole.value, None)
        if row is None or row["ticket"] not in (None, hole.position):
            findings.add("unput", "", hole.witness, None)
        elif int(row["invoke_ns"]) > hole.witness["return_ns"]:
            findings.add("fresh", "an item was got before its put was invoked", hole.witness, row)
        elif int(row["invoke_ns"]) > hole.deadline:
            behind = sought("anything", "return_ns", hole.deadline)
            findings.add("order", "a killed put came too late for its position", row, behind)
    return list(by_value.values())


def report_never_put(hole: Hole, shape: Shape, findings: Findings) -> None:
    before = sought("put", "ticket", hole.position - 1)
    if hole.position < max(shape.put_end, shape.get_end):
        behind = sought("item", "return_ns", hole.passed, since=hole.position + 1)
        findings.add("ticket", NEVER_PUT, behind, before)
    elif hole.position < shape.filled:
        assert shape.capacity is not None
        full = sought("full", "return_ns", hole.passed, since=hole.position + 1 - shape.capacity)
        findings.add("full", NEVER_FILLED, full, before)
    else:
        empty = sought("empty", "return_ns", hole.passed, since=hole.position + 1)
        findings.add("empty", NEVER_REACHED, empty, before)


def fill_get_holes(holes: list[Hole], specials: Specials, shape: Shape, settlement: Settlement) -> None:
    blank = unclaimed(holes, specials, settlement)
    lost: list[Hole] = []
    match(blank, [row for row in specials.gets if row["value"] is None], lost.append)
    settlement.gone_with_consumers += len(blank) - len(lost)
    for hole in lost:
        report_unexplained(hole, shape, settlement.findings)


def unclaimed(holes: list[Hole], specials: Specials, settlement: Settlement) -> list[Hole]:
    """Those whose item neither came again nor is that of a killed get, invoked in time."""
    again: dict[Any, list[Special]] = {}
    for row in specials.redelivered:
        again.setdefault(row["value"], []).append(row)
    claimed: dict[Any, Special] = {}
    for row in specials.gets:
        if row["value"] is not None:
            claimed.setdefault(row["value"], row)
    blank = []
    for hole in holes:
        if hole.value is not None and hole.value in again:
            check_redelivered(hole.witness, again.pop(hole.value), settlement.findings)
        elif not claims(claimed.get(hole.value), hole):
            blank.append(hole)
    settlement.unmatched += [row for rows in again.values() for row in rows]
    return blank


def claims(row: Special | None, hole: Hole) -> bool:
    return row is not None and row["ticket"] in (None, hole.position) and int(row["invoke_ns"]) <= hole.deadline


def check_redelivered(put: Special | None, rows: list[Special], findings: Findings) -> None:
    """Of one item: committed at most once, not before it was put, and where it was put."""
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


def match(holes: list[Hole], killed: list[Special], report: Callable[[Hole], None]) -> None:
    """To each hole an operation, one with its ticket first; reports holes for which none is left."""
    by_ticket = {row["ticket"]: row for row in reversed(killed) if row["ticket"] is not None}
    others = iter([row for row in killed if row["ticket"] is None])
    candidate = next(others, None)
    for hole in holes:
        named = by_ticket.get(hole.position)
        if named is not None and int(named["invoke_ns"]) <= hole.deadline:
            continue
        if candidate is None or int(candidate["invoke_ns"]) > hole.deadline:
            report(hole)
        else:
            candidate = next(others, None)


def report_unexplained(hole: Hole, shape: Shape, findings: Findings) -> None:
    put = put_of(hole)

    def behind(what: str) -> dict[str, Any]:
        return sought(what, "return_ns", hole.passed, since=hole.position + 1, reader=hole.reader)

    if hole.reader >= 0:
        findings.add("lost", "a reader passed over an item", put, behind("read"))
    elif hole.position < shape.get_end:
        findings.add("lost", "an item was never got, though one behind it was", put, behind("get"))
    elif hole.position < shape.empty_end:
        findings.add("lost", "an item was never got, though the queue was empty afterwards", put, behind("empty"))
        findings.add("empty", "empty was answered though an item had not been got", behind("empty"), put)
    elif hole.position < shape.full_end:
        findings.add("full", "full was answered at a head that was never reached", behind("full"), put)
    else:
        again = sought("put", "return_ns", hole.passed, since=hole.position + (shape.capacity or 0))
        findings.add("capacity", "an item was never got, though its room was used again", put, again)


def put_of(hole: Hole) -> dict[str, Any]:
    """Of a get that is missing. A killed put may not know its position."""
    if hole.witness:
        return hole.witness
    return sought("put", "ticket", hole.position) if hole.value is None else {"op": "put", "value": hole.value}


def with_witnesses(holes: Sequence[Hole], lookup: Lookup) -> list[Hole]:
    """Holes of an overwriting queue are seen where the item is not: who was put there is looked up."""
    known = {(hole.side, hole.position, hole.reader) for hole in holes if hole.witness}
    blank = {hole.position for hole in holes if hole.side == "get" and not hole.witness}
    blank -= {position for side, position, _ in known if side == "get"}
    if not blank:
        return list(holes)
    puts = {row["ticket"]: row for row in lookup({"ticket": blank}) if row["op"] == "put" and row["outcome"] == "ok"}
    return [
        hole._replace(value=puts[hole.position]["value"], witness=puts[hole.position])
        if hole.side == "get" and not hole.witness and hole.position in puts
        else hole
        for hole in holes
    ]


def of_unmatched(settlement: Settlement, lookup: Lookup) -> list[Finding]:
    """Redelivered rows whose item is no hole: got by somebody else as well, or behind the last get, or never put."""
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
