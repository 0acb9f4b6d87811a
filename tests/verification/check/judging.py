"""A small history through the conditions, without Spark and without a disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from queueduct.verification.check.decide import decide
from queueduct.verification.check.in_memory import InMemoryTable
from queueduct.verification.check.part import Part
from queueduct.verification.check.verdict import Verdict
from queueduct.verification.history.format import History
from queueduct.verification.history.reader import SCHEMA
from tests.verification.check.brute import NEVER, Op

ONE_PIECE = 1 << 20


def records(history: list[Op], redelivered: frozenset[int] = frozenset()) -> list[dict[str, Any]]:
    """As in the record: each operation by a worker of its own; ``redelivered`` are numbers of operations."""
    return [
        {
            "worker": worker,
            "op": op.op,
            "outcome": op.outcome,
            "value": op.value,
            "ticket": op.ticket,
            "invoke_ns": op.invoke,
            "return_ns": None if op.ret == NEVER else op.ret,
            "reader": op.reader,
            "redelivered": worker in redelivered,
            "weak": op.is_weak,
        }
        for worker, op in enumerate(history)
    ]


def verdict_on(rows: list[dict[str, Any]], kind: str, capacity: int | None, width: int = ONE_PIECE) -> Verdict:
    history = History(Path(), kind, capacity, 0, (), len(rows))
    whole = Part.of(pa.RecordBatch.from_pylist(rows, SCHEMA), history)
    return decide(history, InMemoryTable([whole]), width, lambda step: None)
