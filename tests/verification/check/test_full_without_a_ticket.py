"""A full answer of which nobody knows the position: wrong if the queue cannot have held so many items at any moment."""

from __future__ import annotations

import random

import pytest

from tests.verification.check.brute import is_linearizable
from tests.verification.check.histories import random_history, row
from tests.verification.check.judging import records, verdict_on


def counts(rows, kind="bounded", capacity=2):
    return verdict_on(rows, kind, capacity).counts


@pytest.mark.parametrize("kind", ["bounded", "slots"])
def test_of_a_queue_that_nothing_was_put_into(kind):
    verdict = verdict_on([row(7, "put", "full", None, None, 0, 1)], kind, 2)
    assert verdict.counts == {"full": 1}
    assert verdict.violations[0].witnesses[0]["worker"] == 7


@pytest.mark.parametrize("ticket", [None, 0])
def test_of_a_queue_with_too_few_items(ticket):
    rows = [row(0, "put", "ok", 1, ticket, 0, 1), row(1, "get", "ok", 1, ticket, 9, 10)]
    assert counts([*rows, row(7, "put", "full", None, None, 5, 6)]) == {"full": 1}
    assert counts([*rows, row(7, "put", "full", None, None, 5, 6)], capacity=1) == {}
    assert counts([*rows, row(7, "put", "full", None, None, 11, 12)], capacity=1) == {"full": 1}
    assert counts([*rows, row(7, "put", "full", None, None, 10, 12)], capacity=1) == {}
    assert counts([*rows, row(7, "put", "full", None, None, 5, 6, weak=True)]) == {}


def test_an_item_whose_put_was_killed_may_have_been_there():
    rows = [row(0, "put", "pending", 1, None, 0), row(7, "put", "full", None, None, 5, 6)]
    assert counts(rows, capacity=1) == {}
    rows[0].update(invoke_ns=7)
    assert counts(rows, capacity=1) == {"full": 1}


@pytest.mark.parametrize("with_kills", [False, True], ids=["", "killed"])
@pytest.mark.parametrize("kind", ["bounded", "overwriting"])
def test_there_is_no_false_alarm(kind, with_kills):
    found = 0
    for seed in range(300):
        history, capacity = random_history(random.Random(seed), kind, with_tickets=False, with_kills=with_kills)
        history = [op for op in history if op.outcome != "pending" or op.op == "put" or with_kills]
        wrong = "full" in counts(records(history), kind, capacity)
        assert not (wrong and is_linearizable(history, kind, capacity, has_tickets=False)), history
        found += wrong
    assert found
