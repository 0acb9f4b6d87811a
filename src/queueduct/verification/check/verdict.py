"""The verdict of a check."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["Verdict", "Violation", "witness_line"]


@dataclass(frozen=True)
class Violation:
    """A violation: something that no correct queue does, with the operations that show it."""

    rule: str
    why: str
    witnesses: tuple[dict[str, Any], ...]
    """Rows of the record: op, outcome, worker, value, ticket, invoke_ns, return_ns. The first is the wrong one."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class Verdict:
    """Whether a correct queue could have produced the history."""

    kind: str
    operations: int
    proved: list[str]
    """Sentences: what a pass proves and what it does not; after a failure, what was checked and what was not."""
    violations: list[Violation]
    """The first ones of each kind; ``counts`` has them all."""
    counts: dict[str, int] = field(default_factory=dict)
    """The number of violations of each rule."""
    outcomes: dict[str, int] = field(default_factory=dict)
    """The number of operations of each outcome: "put ok", "get empty", …"""
    check: str = ""
    """tickets, broadcast or order."""
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return not self.counts

    def as_dict(self) -> dict[str, Any]:
        rest = asdict(self)
        rest["violations"] = [violation.as_dict() for violation in self.violations]
        return {"ok": self.ok} | rest


def witness_line(witness: dict[str, Any]) -> str:
    """Returns a row of the record as text: its worker, its operation, when it was invoked and how long it took."""
    known = {name: value for name, value in witness.items() if value is not None}
    worker = f"worker {known['worker']}: " if "worker" in known else ""
    words = [str(known[name]) for name in ("op", "outcome") if name in known]
    words += [f"{name}={known[name]}" for name in ("value", "ticket", "reader") if name in known]
    if "invoke_ns" in known:
        took = f"+{known['return_ns'] - known['invoke_ns']}" if "return_ns" in known else ""
        words.append(f"ns={known['invoke_ns']}{took}")
    words += [name for name in ("redelivered", "weak", "torn") if known.get(name)]
    return worker + " ".join(words)
