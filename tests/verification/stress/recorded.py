"""A history as arrays, and what in it no correct queue could have done: enough to trust a recording, not a proof."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pyarrow_dataset = pytest.importorskip("pyarrow.dataset", reason="histories are Parquet")

NEVER = 2**63 - 1


class Recorded:
    """Columns of a history; None in value, ticket or reader is -1, and in return_ns NEVER."""

    def __init__(self, folder: Path) -> None:
        self.manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
        files = sorted(map(str, folder.glob("*.parquet")))
        self.table = pyarrow_dataset.dataset(files, format="parquet").to_table()
        for name in ("value", "ticket", "reader", "worker"):
            setattr(self, name, self.table[name].fill_null(-1).to_numpy())
        self.invoke = self.table["invoke_ns"].to_numpy()
        self.returned = self.table["return_ns"].fill_null(NEVER).to_numpy()
        self.op = np.array(self.table["op"].to_pylist())
        self.outcome = np.array(self.table["outcome"].to_pylist())
        self.weak = self.table["weak"].to_numpy()
        self.redelivered = self.table["redelivered"].to_numpy()

    def __len__(self) -> int:
        return len(self.op)

    def where(self, op: str, outcome: str) -> np.ndarray:
        return np.flatnonzero((self.op == op) & (self.outcome == outcome))

    def values(self, op: str, outcome: str = "ok") -> np.ndarray:
        return self.value[self.where(op, outcome)]


def problems(history: Recorded) -> list[str]:
    """What is wrong, a line each; of every queue."""
    puts, gets = history.where("put", "ok"), history.where("get", "ok")
    all_puts = np.concatenate([puts, history.where("put", "pending")])
    found = []
    if len(np.unique(history.value[all_puts])) != len(all_puts):
        found.append("values are not unique")
    if (history.value[gets] < 0).any():
        found.append("torn")
    order = np.argsort(history.value[all_puts])
    known = history.value[all_puts][order]
    at = np.minimum(np.searchsorted(known, history.value[gets]), len(known) - 1)
    if (known[at] != history.value[gets]).any():
        found.append("fresh: got, and never put")
    else:
        source = all_puts[order][at]
        if (history.returned[gets] < history.invoke[source]).any():
            found.append("fresh: got before it was put")
        named = (history.ticket[source] >= 0) & (history.ticket[gets] >= 0)
        if (history.ticket[source][named] != history.ticket[gets][named]).any():
            found.append("ticket: put at one position and got at another")
    if (history.returned < history.invoke).any():
        found.append("time goes backwards")
    readers = np.unique(history.reader[gets])
    for reader in readers:
        mine = gets[history.reader[gets] == reader]
        found += one_readers_problems(history, mine)
    if history.manifest["kind"] not in ("events", "overwriting"):
        found += queue_problems(history, puts, gets)
    return found


def one_readers_problems(history: Recorded, gets: np.ndarray) -> list[str]:
    """Each item once, and each producer's in its order for every consumer."""
    found = []
    if len(np.unique(history.value[gets])) != len(gets):
        found.append("repeat: got twice")
    plain = gets[~history.redelivered[gets]]
    producer, counter = history.value[plain] >> 40, history.value[plain] & ((1 << 40) - 1)
    # the rows of a worker are in the order of its operations
    order = np.lexsort((np.arange(len(plain)), producer, history.worker[plain]))
    same = (np.diff(producer[order]) == 0) & (np.diff(history.worker[plain][order]) == 0)
    if (np.diff(counter[order])[same] <= 0).any():
        found.append("order: a producer's items changed places")
    if history.manifest["kind"] == "events" and (np.diff(np.sort(history.ticket[gets])) != 1).any():
        found.append("lost: a reader passed over an item")
    return found


def queue_problems(history: Recorded, puts: np.ndarray, gets: np.ndarray) -> list[str]:
    found = []
    got_or_dying = set(history.value[gets].tolist())
    dying = len(history.where("get", "pending"))
    missing = [value for value in history.value[puts].tolist() if value not in got_or_dying]
    if history.manifest["drained"] and len(missing) > dying:
        found.append(f"lost: {len(missing)} items")
    if (history.ticket[puts] >= 0).all() and len(puts):
        found += ticket_problems(history, puts, gets[~history.redelivered[gets]])
    return found


def ticket_problems(history: Recorded, puts: np.ndarray, gets: np.ndarray) -> list[str]:
    """Of a bounded queue, against the real time: what must come before what by the positions that the queue gave."""
    found = []
    e, d = by_ticket(history, puts), by_ticket(history, gets)
    for side, name in ((e, "put"), (d, "get")):
        if (np.diff(side.ticket) == 0).any():
            found.append(f"ticket: two {name}s at one position")
        if (np.maximum.accumulate(side.invoke) > side.returned).any():
            found.append(f"order: a {name} was over before an earlier position's began")
    capacity = history.manifest["capacity"]
    if (d.latest_invoke(e.ticket - capacity) > e.returned).any():
        found.append("capacity: put before there was room")
    for answer, op, own, other, ahead in (("empty", "get", d, e, 0), ("full", "put", e, d, capacity)):
        rows = history.where(op, answer)
        rows = rows[~history.weak[rows] & (history.ticket[rows] >= 0)]
        ticket, invoke, returned = history.ticket[rows], history.invoke[rows], history.returned[rows]
        if (other.soonest_return(ticket) < invoke).any():
            found.append(f"{answer}: though something at its position or behind it was over")
        if (own.latest_invoke(ticket + ahead - 1) > returned).any():
            found.append(f"{answer}: before something ahead of its position began")
    return found


class by_ticket:  # noqa: N801 - reads as what it gives
    def __init__(self, history: Recorded, rows: np.ndarray) -> None:
        order = rows[np.argsort(history.ticket[rows], kind="stable")]
        self.ticket, self.invoke, self.returned = history.ticket[order], history.invoke[order], history.returned[order]
        self.prefix = np.concatenate([[-1], np.maximum.accumulate(self.invoke)])
        self.suffix = np.concatenate([np.minimum.accumulate(self.returned[::-1])[::-1], [NEVER]])

    def latest_invoke(self, through: np.ndarray) -> np.ndarray:
        """Of all at these positions or before."""
        return self.prefix[np.searchsorted(self.ticket, through, side="right")]

    def soonest_return(self, since: np.ndarray) -> np.ndarray:
        """Of all at these positions or behind."""
        return self.suffix[np.searchsorted(self.ticket, since, side="left")]
