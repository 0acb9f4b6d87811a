"""Small histories: random ones, right and wrong, and all of a size."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import permutations, product
from typing import Any

from tests.verification.check.brute import NEVER, Op
from tests.verification.check.judging import records

KINDS = {"bounded": 2, "growing": None, "slots": 3, "overwriting": 2, "events": None, "unbounded": None}


def random_history(
    chance: random.Random, kind: str, *, with_tickets: bool, with_kills: bool
) -> tuple[list[Op], int | None]:
    """A run of a queue that is right, in one thread, pulled apart in time; then perhaps spoilt."""
    capacity = KINDS[kind] if kind in ("growing", "events", "unbounded") else chance.randint(1, 3)
    history = run(chance, kind, capacity, with_tickets, with_kills)
    for _ in range(chance.choice((0, 0, 1, 1, 2))):
        history = spoilt(chance, history, capacity)
    return history, capacity


def run(
    chance: random.Random,
    kind: str,
    capacity: int | None,
    with_tickets: bool,
    with_kills: bool,
    turns: int | None = None,
) -> list[Op]:
    items: list[tuple[int, int | None]] = []
    log: list[int | None] = []
    places = [0] * chance.randint(1, 2)
    found: list[Op] = []
    tail = 0
    pull = chance.choice((0, 2, 6))
    for turn in range(turns or chance.randint(2, 8)):
        now = turn * 3
        invoke, ret = now - chance.randint(0, pull), now + chance.randint(0, pull)
        is_killed = with_kills and chance.random() < 0.25
        reader = chance.randrange(len(places)) if kind == "events" else None
        is_full = capacity is not None and len(items) == capacity
        op: Op
        if chance.random() < 0.55:
            value = 10 + turn
            if is_full and (kind != "overwriting" or chance.random() < 0.3):
                if is_killed:
                    continue
                op = Op("put", "full", None, tail - capacity, invoke, ret)
            elif is_killed and chance.random() < 0.4:
                op = Op("put", "pending", value, None, invoke, NEVER)
            else:
                is_tombstone = is_killed and chance.random() < 0.5
                if is_full:
                    items.pop(0)
                items.append((tail, None if is_tombstone else value))
                log.append(None if is_tombstone else value)
                ticket = chance.choice((None, tail)) if is_killed else tail
                op = Op("put", "pending" if is_killed else "ok", value, ticket, invoke, NEVER if is_killed else ret)
                tail += 1
        elif kind == "events":
            while places[reader] < tail and log[places[reader]] is None:
                places[reader] += 1
            place = places[reader]
            if place == tail:
                op = Op("get", "empty", None, place, invoke, ret, reader)
            else:
                value_or_none = chance.choice((None, log[place])) if is_killed else log[place]
                outcome = "pending" if is_killed else "ok"
                ticket = chance.choice((None, place)) if is_killed else place
                op = Op("get", outcome, value_or_none, ticket, invoke, NEVER if is_killed else ret, reader)
                places[reader] += 1
        else:
            while items and items[0][1] is None:
                items.pop(0)
            if not items:
                op = Op("get", "empty", None, tail, invoke, ret)
            else:
                ticket, value_or_none = items.pop(0)
                if is_killed:
                    value_or_none = chance.choice((None, value_or_none))
                    ticket = chance.choice((None, ticket))
                outcome = "pending" if is_killed else "ok"
                op = Op("get", outcome, value_or_none, ticket, invoke, NEVER if is_killed else ret)
        if op.outcome in ("empty", "full") and with_tickets and chance.random() < 0.2:
            op = op._replace(is_weak=True)
        found.append(op if with_tickets else op._replace(ticket=None))
    return found


def spoilt(chance: random.Random, history: list[Op], capacity: int | None) -> list[Op]:
    """With one fault, which need not show."""
    if not history:
        return history
    found = list(history)
    n, m = chance.randrange(len(found)), chance.randrange(len(found))
    fault = chance.choice(("time", "time", "time", "swap", "value", "ticket", "drop", "double"))
    op = found[n]
    if fault == "time":
        invoke = op.invoke + chance.randint(-9, 9)
        found[n] = op._replace(invoke=invoke, ret=NEVER if op.ret == NEVER else invoke + chance.randint(0, 6))
    elif fault == "swap" and op.ret != NEVER and found[m].ret != NEVER:
        found[n] = op._replace(invoke=found[m].invoke, ret=found[m].ret)
        found[m] = found[m]._replace(invoke=op.invoke, ret=op.ret)
    elif fault == "value" and op.op == "get" and op.value is not None:
        found[n] = op._replace(value=chance.choice([99, *(each.value for each in found if each.value is not None)]))
    elif fault == "ticket" and op.ticket is not None:
        found[n] = op._replace(ticket=max(0, op.ticket + chance.choice((-1, 1))))
    elif fault == "drop":
        del found[n]
    elif fault == "double" and op.op == "get" and op.outcome == "ok":
        invoke = op.invoke + chance.randint(0, 9)
        found.append(op._replace(invoke=invoke, ret=invoke + 1))
    return found


def all_histories(size: int, alphabet: list[tuple[Op, ...]]) -> Iterator[list[Op]]:
    """Every choice of so many operations from the alphabet, in every arrangement of their times."""
    arrangements = sorted(set(arranged(size)))
    for chosen in product(*alphabet[:size]):
        for times in arrangements:
            yield [
                op._replace(invoke=invoke, ret=NEVER if op.outcome == "pending" else ret)
                for op, (invoke, ret) in zip(chosen, times, strict=True)
            ]


def arranged(size: int) -> Iterator[tuple[tuple[int, int], ...]]:
    for order in set(permutations([n for n in range(size) for _ in (0, 1)])):
        ends: dict[int, list[int]] = {}
        for moment, n in enumerate(order):
            ends.setdefault(n, []).append(moment)
        yield tuple((ends[n][0], ends[n][1]) for n in range(size))


def history_of(items: int = 12, with_tickets: bool = True) -> list[dict[str, Any]]:
    """Puts and gets in turn, two in the queue; nothing overlaps; the queue is empty before and after."""
    ops = [Op("get", "empty", None, 0, 0, 1)]
    for item in range(items):
        ops.append(Op("put", "ok", 100 + item, item, 10 * item + 2, 10 * item + 4))
        if item:
            ops.append(Op("get", "ok", 99 + item, item - 1, 10 * item + 6, 10 * item + 8))
    last = 10 * items
    ops.append(Op("get", "ok", 99 + items, items - 1, last, last + 2))
    ops.append(Op("get", "empty", None, items, last + 4, last + 6))
    rows = records(ops)
    return rows if with_tickets else [dict(row, ticket=None) for row in rows]


def find(rows: list[dict[str, Any]], op: str, value: int) -> dict[str, Any]:
    return next(row for row in rows if row["op"] == op and row["value"] == value)


def row(
    worker: int,
    op: str,
    outcome: str,
    value: int | None,
    ticket: int | None,
    invoke: int,
    ret: int | None = None,
    **more: Any,
) -> dict[str, Any]:
    """One of a record, in the order of its columns."""
    of_record = {"worker": worker, "op": op, "outcome": outcome, "value": value, "ticket": ticket}
    times = {"invoke_ns": invoke, "return_ns": ret, "reader": None, "redelivered": False, "weak": False}
    return of_record | times | more
