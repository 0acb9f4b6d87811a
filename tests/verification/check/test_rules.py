"""A fault is named by the rule that it breaks, and by no other."""

from __future__ import annotations

import pytest

from tests.verification.check.histories import find, history_of, row
from tests.verification.check.judging import verdict_on

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


@pytest.mark.parametrize(("kind", "reader"), [("bounded", None), ("events", 0)])
def test_of_two_puts_at_one_position_either_may_be_got(kind, reader):
    rows = [row(n, "put", "ok", n, 0, 0, 1) for n in (1, 2)]
    for value in (1, 2):
        verdict = verdict_on([*rows, row(3, "get", "ok", value, 0, 4, 5, reader=reader)], kind, 2)
        assert verdict.counts == {"ticket": 1}


@pytest.mark.parametrize("width", WIDTHS)
def test_a_redelivered_item_has_the_position_of_its_put(width):
    rows = [
        row(0, "put", "ok", 1, 0, 0, 1),
        row(0, "put", "ok", 2, 1, 2, 3),
        row(1, "get", "pending", 1, 0, 2),
        row(2, "get", "ok", 1, 1, 4, 5, redelivered=True),
        row(2, "get", "ok", 2, 1, 8, 9),
    ]
    verdict = verdict_on(rows, "bounded", 2, width)
    assert verdict.counts == {"ticket": 1}
    assert [witness["value"] for witness in verdict.violations[0].witnesses] == [1, 1]


@pytest.mark.parametrize("kind", ["bounded", "overwriting"])
def test_an_item_that_a_killed_get_names_too_late_may_have_gone_with_another(kind):
    rows = [
        row(0, "put", "ok", 1, 0, 0, 1),
        row(0, "put", "ok", 2, 1, 2, 3),
        row(1, "get", "ok", 2, 1, 4, 5),
        row(2, "get", "pending", 1, 0, 8),
        row(3, "get", "pending", None, None, 0),
    ]
    assert verdict_on(rows, kind, 2).ok
    assert set(verdict_on(rows[:-1], kind, 2).counts) == {"lost"}


@pytest.mark.parametrize("width", [16, 1 << 20])
def test_every_violation_is_counted_under_its_own_rule(width):
    rows = history_of(400)
    for item in range(150):
        find(rows, "get", 150 + item)["value"] = -1 - item
    verdict = verdict_on(rows, "bounded", 2, width)
    assert verdict.counts == {"torn": 150}
    assert len(verdict.violations) == 100


@pytest.mark.timeout(60)
def test_many_violations_are_named_in_time_that_grows_with_their_number():
    rows = history_of(20_000)
    for item in range(0, 20_000, 2):
        got = rows[3 + 2 * item]
        assert got["op"] == "get"
        got["value"] = 100 + item ^ 1
    counts = verdict_on(rows, "bounded", 2, 500).counts
    assert counts["repeat"] > 9_000


@pytest.mark.parametrize("with_tickets", [True, False])
@pytest.mark.parametrize("kind", ["bounded", "unbounded", "overwriting", "events"])
def test_a_failed_verdict_claims_nothing(kind, with_tickets):
    reader = 0 if kind == "events" else None
    rows = [dict(each, reader=None if each["op"] == "put" else reader) for each in history_of(4, with_tickets)]
    find(rows, "get", 101)["value"] = 100
    verdict = verdict_on(rows, kind, 2 if kind in ("bounded", "overwriting") else None)
    assert not verdict.ok
    assert verdict.proved
    assert all(sentence.startswith(("checked, and found wrong", "not proved")) for sentence in verdict.proved)
