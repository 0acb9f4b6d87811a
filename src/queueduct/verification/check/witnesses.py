"""Violations with both witnesses, from the findings of the buckets. Witnesses in other buckets are looked up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from queueduct.verification.check.operations import TWO_PUTS, Finding, Findings
from queueduct.verification.check.verdict import Violation
from queueduct.verification.history.format import HistoryError

__all__ = ["Lookup", "Wanted", "explained"]

MOST_NAMED = 10_000

Row = dict[str, Any]
Wanted = dict[str, set[int]]
"""Columns of the record, and the values in them of the rows that are wanted."""


class Lookup(Protocol):
    """Finds rows of the record."""

    def __call__(self, wanted: Wanted) -> list[Row]:
        """Returns the rows that have one of the wanted values in one of the columns."""
        ...


def explained(findings: Sequence[Finding], lookup: Lookup) -> tuple[list[Violation], dict[str, int]]:
    """Returns the violations in the order of time, and how many there are of each rule."""
    for finding in findings:
        if finding.why == TWO_PUTS and finding.other and finding.subject["value"] == finding.other["value"]:
            raise not_unique(finding.subject["value"], [finding.subject, finding.other])
    found = shortened(named_findings(findings, lookup))
    wanted: Wanted = {}
    for finding in found:
        for witness in (finding.subject, finding.other):
            column = sought_in(witness)
            if witness and column:
                wanted.setdefault(column, set()).add(int(witness[column]))
    known = Known(lookup(wanted) if wanted else [], wanted)
    counts: dict[str, int] = {}
    violations = []
    for finding in found:
        counts[finding.rule] = counts.get(finding.rule, 0) + finding.number
        if finding.subject:
            violations.append(Violation(finding.rule, finding.why, witnesses_of(finding, known)))
    violations.sort(key=lambda violation: violation.witnesses[0].get("invoke_ns") or 0)
    return violations, counts


def shortened(findings: Sequence[Finding]) -> list[Finding]:
    """Keeps as many findings of each sentence as one bucket lists, and counts the others."""
    listed = Findings()
    more: list[Finding] = []
    for finding in findings:
        if not finding.subject:
            more.append(finding)
        elif listed.room_for(finding.rule, finding.why, 1):
            listed.listed.append(finding)
    return listed.rows() + more


def sought_in(witness: Row | None) -> str | None:
    """Returns the column by which a witness must be looked up; None if it is complete, or nothing is known of it."""
    if not witness or "worker" in witness:
        return None
    columns = ("value", "invoke_ns", "return_ns", "ticket")
    return next((column for column in columns if witness.get(column) is not None), None)


class Known:
    """The rows that were looked up."""

    def __init__(self, rows: Iterable[Row], columns: Iterable[str]) -> None:
        self.by_column: dict[str, dict[Any, list[Row]]] = {column: {} for column in columns}
        for row in rows:
            for column, found in self.by_column.items():
                found.setdefault(row[column], []).append(row)

    def complete(self, witness: Row, beside: Row | None) -> Row | None:
        """Returns the row of the record that is meant, which is not ``beside``."""
        column = sought_in(witness)
        if column is None:
            return witness
        candidates = self.by_column[column].get(witness[column], ())
        return next((row for row in candidates if row is not beside and is_meant(row, witness)), None)


def is_meant(row: Row, witness: Row) -> bool:
    wanted = {column: value for column, value in witness.items() if column not in ("since", "until")}
    if any(row.get(column) != value for column, value in wanted.items()):
        return False
    if "since" not in witness and "until" not in witness:
        return True
    if row["ticket"] is None:
        return False
    behind = "op" not in witness and row["outcome"] == "empty"  # before its position, not at it
    ticket = int(row["ticket"])
    return int(witness.get("since", ticket)) + behind <= ticket <= int(witness.get("until", ticket))


def witnesses_of(finding: Finding, known: Known) -> tuple[Row, ...]:
    """Returns the rows of the record, without those that are not in it."""
    subject = known.complete(finding.subject, None)
    other = known.complete(finding.other, subject) if finding.other else None
    return tuple(row for row in (subject, other) if row) or (finding.subject,)


def named_findings(findings: Sequence[Finding], lookup: Lookup) -> list[Finding]:
    """Gives each mismatch of a bucket its rule: was the value put, or got, at another position?"""
    unnamed = [finding for finding in findings if finding.rule in ("mismatch", "unput")]
    if not unnamed:
        return list(findings)
    unnamed = counted_from(MOST_NAMED, unnamed)
    values = {int(finding.subject["value"]) for finding in unnamed if finding.subject}
    by_value: dict[int, list[Row]] = {value: [] for value in values}
    for row in lookup({"value": values}) if values else ():
        by_value[row["value"]].append(row)
    named = [finding for finding in findings if finding.rule not in ("mismatch", "unput")]
    for finding in unnamed:
        named.extend(names_of(finding, by_value.get(finding.subject.get("value", -1), [])))
    return named


def counted_from(most: int, findings: list[Finding]) -> list[Finding]:
    """Returns the first findings in full, and one that counts the others."""
    listed = [finding for finding in findings if finding.subject]
    number = sum(finding.number for finding in findings) - len(listed[:most])
    return listed[:most] + ([Finding("mismatch", "", {}, None, number)] if number else [])


def names_of(finding: Finding, rows: list[Row]) -> list[Finding]:
    """``rows`` are the rows with its value."""
    got, put = finding.subject, finding.other
    if not got:
        return [finding._replace(rule="ticket", why="a get gave another item than was put at its position")]
    puts = [row for row in rows if row["op"] == "put"]
    gets = [row for row in rows if row["op"] == "get" and row["outcome"] == "ok"]
    gets = [row for row in gets if row.get("reader") == got.get("reader")]
    if len(puts) > 1:
        raise not_unique(got["value"], puts)
    if not puts and put is not None:
        return [Finding("torn", "a get returned an item that was never put, at a position that was put", got, put)]
    if not puts:
        return [Finding("fresh", "an item was got that was never put", got, None)]
    twins = [row for row in gets if row["ticket"] != got["ticket"] or row["worker"] != got["worker"]]
    if twins:
        return [Finding("repeat", "an item was got twice", got, twins[0])]
    return [
        Finding("ticket", "an item was got at another position than it was put at", got, puts[0]),
        Finding("order", "an item was got in another place of the order than it was put in", got, puts[0]),
    ]


def not_unique(value: int, puts: list[Row]) -> HistoryError:
    by = f" by workers {' and '.join(str(row['worker']) for row in puts[:2])}" if puts else ""
    return HistoryError(f"values must be unique: {value} was put twice{by}; give each run a directory of its own")
