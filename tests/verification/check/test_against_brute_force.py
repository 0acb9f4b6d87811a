"""The conditions agree with a search through all orders: no false alarm, no miss."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("pyarrow", reason="the checker needs it")

from tests.verification.check.brute import NEVER, Op, is_linearizable
from tests.verification.check.histories import all_histories, random_history
from tests.verification.check.judging import ONE_PIECE, records, verdict_on

SHORT, LONG = 60, 100_000
SEED = 20261116


def number(is_long: bool) -> int:
    return LONG if is_long else SHORT


def told(history: list[Op], capacity: int | None, counts: dict[str, int]) -> str:
    return "\n".join([f"capacity {capacity}, found {counts}", *map(str, history)])


def compare(kind: str, seed: int, *, with_tickets: bool, with_kills: bool, is_exact: bool = True) -> bool:
    """One random history. Returns whether it was right."""
    chance = random.Random(seed)
    history, capacity = random_history(chance, kind, with_tickets=with_tickets, with_kills=with_kills)
    if not with_tickets or kind == "growing":
        history = [op for op in history if op.outcome != "full"]  # nothing can be said of them
    limit = capacity if with_tickets or not is_exact else None
    is_right = is_linearizable(history, kind, limit, has_tickets=with_tickets)
    for width in (ONE_PIECE, 1 + seed % 3):
        verdict = verdict_on(records(history), kind, limit if is_exact else capacity, width)
        if is_exact:
            assert verdict.ok == is_right, told(history, capacity, verdict.counts)
        else:
            assert verdict.ok or not is_right, told(history, capacity, verdict.counts)
    return is_right


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("with_kills", [False, True], ids=["", "killed"])
@pytest.mark.parametrize("kind", ["bounded", "slots", "growing", "overwriting", "events"])
def test_random_histories_with_tickets(kind, with_kills, is_long):
    right = [compare(kind, SEED + n, with_tickets=True, with_kills=with_kills) for n in range(number(is_long) // 2)]
    assert 0.2 < sum(right) / len(right) < 0.95, "both right and wrong ones must come"


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("with_kills", [False, True], ids=["", "killed"])
@pytest.mark.parametrize("kind", ["unbounded", "bounded"])
def test_random_histories_without_tickets(kind, with_kills, is_long):
    right = [compare(kind, SEED + n, with_tickets=False, with_kills=with_kills) for n in range(number(is_long) // 2)]
    assert 0.2 < sum(right) / len(right) < 0.97


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kind", ["bounded", "overwriting", "events"])
def test_without_tickets_there_is_no_false_alarm_where_there_is_no_proof(kind, is_long):
    for n in range(number(is_long) // 2):
        compare(kind, SEED + n, with_tickets=False, with_kills=n % 2 == 1, is_exact=False)


def op(name, outcome, value=None, ticket=None, **more):
    return Op(name, outcome, value, ticket, 0, NEVER if outcome == "pending" else 0, **more)


PUTS = (op("put", "ok", 1), op("put", "ok", 2))
GETS = (op("get", "ok", 1), op("get", "ok", 2), op("get", "empty"))
KILLED = (op("put", "pending", 3), op("get", "pending"), op("get", "pending", 1), op("get", "ok", 3))
ALPHABET = [(PUTS[0],), (PUTS[1], *GETS), (*GETS, *KILLED), GETS]


def put(value, invoke, ret=NEVER):
    return Op("put", "pending" if ret == NEVER else "ok", value, None, invoke, ret)


def get(value, invoke, ret=NEVER):
    return Op("get", "pending" if ret == NEVER else "ok", value, None, invoke, ret)


# The last get was killed, and names an item. Another killed get, or a put, might have taken that item away before.
NAMED = {
    "another get": ("unbounded", None, [put(1, 3, 5), get(None, 4), Op("get", "empty", None, None, 9, 9), get(1, 23)]),
    "a put": (
        "overwriting",
        1,
        [put(1, 0, 0), put(2, 1), get(2, 6, 7), Op("get", "empty", None, None, 9, 9), get(1, 11)],
    ),
    "order": ("overwriting", 2, [put(1, 0, 0), put(2, 3, 3), put(3, 4), put(4, 5, 5), get(2, 6, 7), get(1, 24)]),
}


@pytest.mark.parametrize("by", NAMED)
def test_an_item_that_a_killed_get_names_was_there_until_then(by):
    kind, capacity, history = NAMED[by]
    for named, is_right in ((history[-1], False), (history[-1]._replace(invoke=0), True)):
        tried = [*history[:-1], named]
        assert is_linearizable(tried, kind, capacity, has_tickets=False) == is_right
        assert verdict_on(records(tried), kind, capacity).ok == is_right


def numbered(ops, tickets):
    return [each._replace(ticket=ticket) for each in ops for ticket in tickets]


TICKETED = [
    (PUTS[0]._replace(ticket=0),),
    (PUTS[1]._replace(ticket=1), GETS[0]._replace(ticket=0), *numbered(GETS[2:], (0, 1))),
    (*numbered((GETS[0], op("put", "full"), GETS[2]), (0, 1)), *KILLED[:3], GETS[1]._replace(ticket=1)),
    (GETS[0]._replace(ticket=0), GETS[1]._replace(ticket=1), op("get", "empty", None, 1), op("put", "full", None, 0)),
]


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("size", [1, 2, 3, pytest.param(4, marks=pytest.mark.long)])
def test_all_small_histories_without_tickets(size):
    for history in all_histories(size, ALPHABET):
        is_right = is_linearizable(history, "unbounded", None, has_tickets=False)
        verdict = verdict_on(records(history), "unbounded", None)
        assert verdict.ok == is_right, told(history, None, verdict.counts)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", ["bounded", "overwriting"])
@pytest.mark.parametrize(
    "size", [1, 2, pytest.param(3, marks=pytest.mark.long), pytest.param(4, marks=pytest.mark.long)]
)
def test_all_small_histories_with_tickets(size, kind):
    for history in all_histories(size, TICKETED):
        is_right = is_linearizable(history, kind, 1)
        verdict = verdict_on(records(history), kind, 1)
        assert verdict.ok == is_right, told(history, 1, verdict.counts)
