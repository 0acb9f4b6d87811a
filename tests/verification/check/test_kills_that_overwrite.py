"""An overwriting queue whose workers are killed: what a killed put may have overwritten, and a killed get taken."""

from __future__ import annotations

import pytest

from tests.verification.check.brute import NEVER, Op, is_linearizable
from tests.verification.check.histories import row
from tests.verification.check.judging import verdict_on

WIDTHS = [1, 2, 3, 1 << 20]


def rules(rows, capacity, width):
    ops = [
        Op(*(each[name] for name in ("op", "outcome", "value", "ticket", "invoke_ns")), ret_of(each)) for each in rows
    ]
    verdict = verdict_on(rows, "overwriting", capacity, width)
    assert verdict.ok == is_linearizable(ops, "overwriting", capacity)
    return set(verdict.counts)


def ret_of(row):
    return NEVER if row["return_ns"] is None else row["return_ns"]


@pytest.mark.parametrize("width", WIDTHS)
class TestAKilledPut:
    def test_overwrites_nothing_before_the_puts_that_it_follows(self, width):
        rows = [
            row(0, "put", "ok", 1, 0, 0, 1),
            row(0, "put", "ok", 2, 1, 2, 3),
            row(2, "get", "ok", 2, 1, 4, 5),
            row(0, "put", "ok", 3, 2, 8, 9),
            row(1, "put", "pending", 4, None, 0),
        ]
        assert rules(rows, 3, width) == {"lost"}
        rows[3].update(invoke_ns=4)
        assert rules(rows, 3, width) == set()

    def test_overwrites_nothing_but_at_its_own_position(self, width):
        rows = [
            row(2, "put", "ok", 1, 0, 0, 1),
            row(2, "put", "ok", 2, 1, 2, 3),
            row(0, "get", "ok", 2, 1, 9, 13),
            row(1, "put", "pending", 3, 5, 3),
        ]
        assert rules(rows, 2, width) == {"lost"}
        rows[3].update(ticket=2)
        assert rules(rows, 2, width) == set()

    def test_overwrites_nothing_before_the_killed_puts_that_it_follows(self, width):
        rows = [
            row(0, "put", "ok", 1, 0, 0, 1),
            row(0, "put", "ok", 2, 1, 2, 3),
            row(1, "put", "pending", 3, 2, 8),
            row(2, "put", "ok", 4, 3, 2, 20),
            row(3, "get", "ok", 2, 1, 4, 5),
            row(4, "put", "pending", 5, 4, 0),
        ]
        assert rules(rows, 4, width) == {"lost"}
        rows[2].update(invoke_ns=5)
        assert rules(rows, 4, width) == set()

    def test_that_came_too_late_leaves_its_position_to_another(self, width):
        rows = [
            row(0, "put", "ok", 1, 0, 0, 1),
            row(0, "put", "ok", 2, 1, 2, 3),
            row(1, "put", "pending", 3, 2, 8),
            row(3, "get", "ok", 2, 1, 4, 5),
            row(4, "put", "pending", 5, None, 0),
        ]
        assert rules(rows, 2, width) == set()


@pytest.mark.parametrize("width", WIDTHS)
class TestAKilledGet:
    def test_took_nothing_after_the_empty_answer_behind_it(self, width):
        rows = [
            row(0, "get", "empty", None, 1, 0, 2),
            row(1, "get", "pending", None, None, 8),
            row(2, "put", "ok", 100, 0, 1, 3),
            row(3, "put", "ok", 101, 1, 5, 8),
        ]
        assert rules(rows, 1, width) == {"lost", "empty"}
        rows[1].update(invoke_ns=2)
        assert rules(rows, 1, width) == set()

    @pytest.mark.parametrize("puts", [2, 3])
    def test_took_nothing_after_the_put_that_follows_an_empty_answer_behind_it(self, width, puts):
        rows = [
            row(0, "get", "empty", None, 0, -2, -1),
            row(0, "get", "empty", None, 1, 0, 100),
            row(1, "get", "pending", None, None, 9),
            row(2, "put", "ok", 100, 0, 1, 3),
            *(row(3, "put", "ok", 100 + n, n, 5, 7 + n) for n in range(1, puts)),
        ]
        assert rules(rows, 2, width) == {"lost", "empty"}
        rows[2].update(invoke_ns=8)
        assert rules(rows, 2, width) == set()


@pytest.mark.parametrize("width", WIDTHS)
class TestAnItemThatWasPassedOver:
    """Item 0, by the get of item 1 that returned at 5. The put at 3 overwrote it, so the one at 2 came before."""

    def rows(self, *more):
        return [
            row(0, "put", "ok", 100, 0, 0, 1),
            row(0, "put", "ok", 101, 1, 2, 3),
            row(1, "put", "ok", 103, 3, 2, 30),
            row(2, "get", "ok", 101, 1, 4, 5),
            *more,
        ]

    def test_was_overwritten_after_the_tombstone_between(self, width):
        rows = self.rows(row(3, "put", "pending", 102, None, 6))
        assert rules(rows, 3, width) == {"lost"}
        (lost,) = verdict_on(rows, "overwriting", 3, width).violations
        assert [witness["value"] for witness in lost.witnesses] == [100, 101]
        rows[-1].update(invoke_ns=5)
        assert rules(rows, 3, width) == set()

    def test_was_overwritten_after_the_killed_put_between_whose_item_was_got(self, width):
        rows = self.rows(row(3, "put", "pending", 102, None, 6), row(2, "get", "ok", 102, 2, 8, 9))
        assert rules(rows, 3, width) == {"lost"}
        rows[-2].update(invoke_ns=5)
        assert rules(rows, 3, width) == set()

    def test_was_overwritten_by_a_killed_put(self, width):
        rows = self.rows(row(3, "put", "pending", 102, None, 4), row(3, "put", "pending", 103, 3, 6))
        rows[2].update(ticket=4, value=104)
        assert rules(rows, 3, width) == {"lost"}
        rows[-1].update(invoke_ns=5)
        assert rules(rows, 3, width) == set()

    def test_may_have_gone_with_a_killed_get(self, width):
        rows = self.rows(row(3, "put", "pending", 102, None, 6), row(4, "get", "pending", None, None, 5))
        assert rules(rows, 3, width) == set()
        rows[-1].update(invoke_ns=6)
        assert rules(rows, 3, width) == {"lost"}

    def test_is_no_item_if_it_was_never_put(self, width):
        rows = self.rows(row(3, "put", "pending", 102, None, 6), row(3, "put", "pending", 99, None, 0))
        del rows[0]
        assert rules(rows, 3, width) == set()

    def test_was_overwritten_after_another_killed_put_if_the_one_at_that_position_came_too_late(self, width):
        rows = self.rows(row(3, "put", "pending", 102, 2, 6), row(4, "put", "pending", 110, None, 5))
        assert rules(rows, 3, width) == set()
        rows.append(row(1, "put", "ok", 105, 5, 20, 30))
        assert rules(rows, 3, width) == {"ticket"}, "the other one was at position 4"
        rows.append(row(4, "get", "pending", None, None, 5))
        assert rules(rows, 3, width) == set()

    def test_leaves_the_killed_get_to_an_item_that_nothing_overwrote(self, width):
        rows = self.rows(
            row(1, "put", "ok", 104, 4, 6, 7),
            row(2, "get", "ok", 104, 4, 8, 9),
            row(4, "get", "pending", None, None, 5),
            row(3, "put", "pending", 102, 2, 6),
            row(4, "put", "pending", 110, None, 5),
        )
        assert rules(rows, 3, width) == set()
        rows[-1].update(invoke_ns=6)
        assert rules(rows, 3, width) == {"lost"}
