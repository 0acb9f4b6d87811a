"""A violation shows the two operations that exclude each other, as they are in the record, and no others."""

from __future__ import annotations

import random

import pytest

from tests.verification.check.histories import KINDS, random_history, row
from tests.verification.check.judging import records, verdict_on

WIDTHS = [1, 3, 1 << 20]
ALONE = {
    "an item was got that was never put",
    "an item's content contradicts itself",
    "a position is before the first",
    "full was answered by a queue without a limit",
    "full was answered while there were never so many items",
}
"""What one operation shows by itself."""
EDGES = {
    "no put has a position that the queue gave away",
    "full was answered though so many items had never been put",
    "empty was answered at a position that the queue had not reached",
}
"""What is missing cannot be shown: what is behind it, and what is before it if anything is."""
COLUMNS = ("worker", "op", "outcome", "value", "ticket", "invoke_ns", "return_ns")


def of(rows, rule, kind="bounded", capacity=2, width=1 << 20):
    """The workers of the witnesses of each violation of the rule."""
    found = verdict_on(rows, kind, capacity, width).violations
    return [tuple(witness["worker"] for witness in each.witnesses) for each in found if each.rule == rule]


@pytest.mark.parametrize("with_kills", [False, True], ids=["", "killed"])
@pytest.mark.parametrize("with_tickets", [False, True], ids=["order", "tickets"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_witness_is_a_row_of_the_record(kind, with_tickets, with_kills):
    for seed in range(60):
        history, capacity = random_history(random.Random(seed), kind, with_tickets=with_tickets, with_kills=with_kills)
        rows = records(history)
        known = {tuple(each[name] for name in COLUMNS) for each in rows}
        for violation in verdict_on(rows, kind, capacity, WIDTHS[seed % 3]).violations:
            shown = [tuple(each[name] for name in COLUMNS) for each in violation.witnesses]
            assert set(shown) <= known, violation
            assert len(set(shown)) == len(shown), violation
            assert len(shown) == 2 or violation.why in ALONE | EDGES, violation


@pytest.mark.parametrize("width", WIDTHS)
def test_at_one_moment_the_operation_that_is_meant_is_shown(width):
    rows = [
        row(0, "put", "ok", 1, 0, 0, 1),
        row(0, "put", "ok", 2, 1, 2, 3),
        row(1, "get", "ok", 2, 1, 4, 5),
        row(3, "get", "empty", None, 2, 20, 21),
        row(2, "get", "ok", 1, 0, 20, 21),
    ]
    assert of(rows, "order", "unbounded", None, width) == [(1, 2)]


@pytest.mark.parametrize("width", WIDTHS)
def test_at_one_moment_the_reader_that_is_meant_is_shown(width):
    rows = [
        row(0, "put", "ok", 1, 0, 0, 1),
        row(0, "put", "ok", 2, 1, 2, 3),
        *(row(2, "get", "ok", n + 1, n, 20, 21, reader=0) for n in (0, 1)),
        row(1, "get", "ok", 2, 1, 4, 5, reader=1),
        row(3, "get", "ok", 1, 0, 20, 21, reader=1),
    ]
    assert of(rows, "order", "events", None, width) == [(1, 3)]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    ("rule", "last"),
    [
        ("lost", row(7, "get", "ok", 2, 1, 6, 7)),
        ("lost", row(7, "get", "empty", None, 2, 6, 7)),
        ("capacity", row(7, "put", "ok", 3, 2, 6, 7)),
    ],
)
def test_an_item_that_nobody_got_stands_beside_what_shows_it(rule, last, width):
    rows = [row(5, "put", "ok", 1, 0, 0, 1), row(6, "put", "ok", 2, 1, 2, 3), last]
    assert (5, 7) in of(rows, rule, width=width)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_false_answer_stands_beside_the_item_that_excludes_it(width):
    put = row(5, "put", "ok", 1, 0, 0, 1)
    assert of([put, row(7, "get", "empty", None, 1, 2, 3)], "empty", width=width) == [(7, 5)]
    assert of([put, row(7, "get", "empty", None, 2, 2, 3)], "empty", width=width) == [(7, 5), (7, 5)]
    assert of([put, row(7, "put", "full", None, 0, 2, 3)], "full", width=width) == [(7, 5)]
    puts = [row(5, "put", "ok", n + 1, n, 2 * n, 2 * n + 1) for n in range(4)]
    gets = [row(6, "get", "ok", n + 1, n, 2 * n + 1, 2 * n + 2) for n in range(1)]
    assert of([*puts[:3], *gets, row(7, "put", "full", None, 2, 8, 9)], "full", width=width) == [(7, 5), (7, 5)]


@pytest.mark.parametrize("width", WIDTHS)
def test_a_position_that_nobody_put_stands_between_its_neighbours(width):
    rows = [row(5, "put", "ok", 1, 0, 0, 1), row(7, "put", "ok", 2, 2, 4, 5)]
    assert of(rows, "ticket", "unbounded", None, width=width) == [(7, 5)]


class TestWithoutTickets:
    """Pairs of puts and gets: the two of one value, or one of each of two values."""

    def test_an_item_that_was_got_twice_at_one_moment(self):
        rows = [row(0, "put", "ok", 1, None, 0, 1), *(row(n, "get", "ok", 1, None, 5, 6) for n in (1, 2))]
        ((first, second),) = of(rows, "repeat")
        assert {first, second} == {1, 2}

    def test_of_two_gets_the_one_that_came_before_the_put(self):
        rows = [
            row(1, "get", "ok", 1, None, 0, 20),
            row(2, "get", "ok", 1, None, 3, 4),
            row(0, "put", "ok", 1, None, 9, 10),
        ]
        assert of(rows, "fresh") == [(2, 0)]

    def test_an_empty_answer_and_the_item_that_was_there(self):
        rows = [row(0, "put", "ok", 1, None, 0, 1), row(1, "get", "empty", None, None, 5, 6)]
        assert of(rows, "empty") == [(1, 0)]
        assert of([*rows, row(2, "get", "ok", 1, None, 7, 8)], "empty") == [(1, 0)]

    def test_an_item_too_many_and_one_that_was_there(self):
        rows = [row(n, "put", "ok", n, None, 2 * n, 2 * n + 1) for n in range(3)]
        assert of(rows, "capacity") == [(2, 0)]

    def test_the_reader_that_is_meant(self):
        rows = [row(0, "put", "ok", n, None, 2 * n, 2 * n + 1) for n in (1, 2)]
        rows += [row(5, "get", "ok", n, None, 20, 21, reader=0) for n in (1, 2)]
        rows += [row(6, "get", "ok", 2, None, 20, 21, reader=1), row(7, "get", "ok", 1, None, 30, 31, reader=1)]
        assert of(rows, "order", "events", None) == [(0, 6)]
