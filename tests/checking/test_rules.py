"""A fault is named by the rule that it breaks, and by no other."""

from __future__ import annotations

import pytest
from histories import row
from judging import verdict_on

WIDTHS = [1, 2, 3, 1 << 20]


@pytest.mark.parametrize("width", WIDTHS)
def test_what_another_reader_got_is_no_repeat(width):
    rows = [
        row(0, "put", "ok", 10, 0, 0, 1),
        row(0, "put", "ok", 20, 1, 2, 3),
        row(1, "get", "ok", 10, 0, 4, 5, reader=0),
        row(1, "get", "ok", 20, 1, 6, 7, reader=0),
        row(2, "get", "ok", 20, 0, 4, 5, reader=1),
        row(2, "get", "ok", 10, 1, 6, 7, reader=1),
    ]
    assert set(verdict_on(rows, "events", None, width).counts) == {"order", "ticket"}


@pytest.mark.parametrize("width", WIDTHS)
def test_where_nobody_answered_full_no_full_is_false(width):
    rows = [row(1, "get", "empty", None, 1, 2, 3)]
    assert set(verdict_on(rows, "bounded", 4, width).counts) == {"empty"}


@pytest.mark.parametrize(("kind", "reader"), [("bounded", None), ("events", 0)])
def test_an_item_that_was_got_before_its_put_which_was_killed(kind, reader):
    rows = [row(0, "put", "pending", 1, None, 10), row(2, "get", "ok", 1, 0, 4, 5, reader=reader)]
    verdict = verdict_on(rows, kind, 2)
    assert set(verdict.counts) == {"fresh"}
    assert [witness["worker"] for witness in verdict.violations[0].witnesses] == [2, 0]


def test_the_reader_that_got_an_item_before_its_put_was_killed_need_not_be_the_first():
    rows = [row(0, "put", "pending", 1, None, 10), row(1, "get", "ok", 1, 0, 11, 12, reader=0)]
    rows.append(row(2, "get", "ok", 1, 0, 4, 5, reader=1))
    (fresh,) = verdict_on(rows, "events", None).violations
    assert (fresh.rule, fresh.witnesses[0]["worker"]) == ("fresh", 2)
