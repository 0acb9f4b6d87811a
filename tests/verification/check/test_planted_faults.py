"""Each fault that a queue can have, planted in a history that is right, is found under its name, with its witnesses."""

from __future__ import annotations

import random

import pytest

from tests.verification.check.brute import Op
from tests.verification.check.histories import find, history_of, run
from tests.verification.check.judging import records, verdict_on

KINDS = ["bounded", "slots", "growing", "unbounded"]


def violations(rows, kind="bounded", capacity=2, width=4):
    limit = capacity if kind in ("bounded", "slots") else None
    return verdict_on(rows, kind, limit, width).violations


def rules(rows, **options):
    return {violation.rule for violation in violations(rows, **options)}


@pytest.mark.parametrize("with_tickets", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_the_history_without_a_fault_passes(kind, with_tickets):
    assert rules(history_of(with_tickets=with_tickets), kind=kind) == set()


@pytest.mark.parametrize("with_tickets", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_a_lost_item(kind, with_tickets):
    rows = history_of(with_tickets=with_tickets)
    rows.remove(find(rows, "get", 105))
    found = violations(rows, kind=kind)
    (lost,) = [violation for violation in found if violation.rule == "lost"][:1]
    assert lost.witnesses[0]["value"] == 105
    assert lost.witnesses[0]["worker"] == find(rows, "put", 105)["worker"]


@pytest.mark.parametrize("with_tickets", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_a_doubled_item(kind, with_tickets):
    rows = history_of(with_tickets=with_tickets)
    rows.append(dict(find(rows, "get", 105), worker=77, invoke_ns=300, return_ns=301))
    (repeat,) = [violation for violation in violations(rows, kind=kind) if violation.rule == "repeat"]
    assert {witness["worker"] for witness in repeat.witnesses} == {77, find(rows, "get", 105)["worker"]}


def test_an_item_doubled_at_the_position_of_another():
    rows = history_of()
    find(rows, "get", 106)["value"] = 105
    assert "repeat" in rules(rows)


@pytest.mark.parametrize("with_tickets", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_swapped_order(kind, with_tickets):
    rows = history_of(with_tickets=with_tickets)
    first, second = find(rows, "get", 104), find(rows, "get", 105)
    first["value"], second["value"] = 105, 104
    found = violations(rows, kind=kind)
    assert "order" in {violation.rule for violation in found}
    assert all(len(violation.witnesses) == 2 for violation in found)


def test_swapped_order_in_time():
    rows = history_of()
    first, second = find(rows, "get", 104), find(rows, "get", 105)
    for column in ("invoke_ns", "return_ns"):
        first[column], second[column] = second[column], first[column]
    found = [violation for violation in violations(rows) if violation.rule == "order"]
    assert {witness["value"] for witness in found[0].witnesses} == {104, 105}


@pytest.mark.parametrize("with_tickets", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_a_false_empty(kind, with_tickets):
    rows = history_of(with_tickets=with_tickets)
    ticket = 5 if with_tickets else None
    false = dict(rows[0], worker=77, ticket=ticket, invoke_ns=59, return_ns=60)
    found = [violation for violation in violations([*rows, false], kind=kind) if violation.rule == "empty"]
    assert any(violation.witnesses[0]["worker"] == 77 for violation in found)
    assert all(len(violation.witnesses) == 2 for violation in found)


@pytest.mark.parametrize("ticket", [4, 5, 6])
def test_a_false_full(ticket):
    rows = history_of()
    false = dict(rows[0], op="put", outcome="full", worker=77, ticket=ticket, invoke_ns=59, return_ns=60)
    found = violations([*rows, false])
    assert {violation.rule for violation in found} == {"full"}
    assert 77 in {witness.get("worker") for violation in found for witness in violation.witnesses}


def test_a_true_full_passes():
    rows = history_of()
    true = dict(rows[0], op="put", outcome="full", ticket=4, invoke_ns=55, return_ns=55)
    assert rules([*rows, true]) == set()


def test_a_full_of_a_queue_without_a_limit():
    rows = history_of(with_tickets=False)
    rows.append(dict(rows[0], op="put", outcome="full", worker=77, invoke_ns=59, return_ns=60))
    assert rules(rows, kind="unbounded") == {"full"}


@pytest.mark.parametrize("with_tickets", [True, False])
def test_too_many_items(with_tickets):
    rows = history_of(with_tickets=with_tickets)
    assert rules(rows, capacity=1) == {"capacity"}


def test_a_torn_item_by_its_flag():
    rows = history_of()
    find(rows, "get", 105)["torn"] = True
    (torn,) = violations(rows)
    assert (torn.rule, torn.witnesses[0]["value"]) == ("torn", 105)


def test_a_torn_item_by_its_value():
    rows = history_of()
    find(rows, "get", 105)["value"] = -12345
    (torn,) = violations(rows)
    assert torn.rule == "torn"
    assert [witness["value"] for witness in torn.witnesses] == [-12345, 105]


def test_an_item_that_nobody_put():
    rows = history_of(with_tickets=False)
    rows.append(dict(find(rows, "get", 105), worker=77, value=999))
    assert rules(rows) == {"fresh"}


def test_an_item_that_came_before_its_put():
    for with_tickets in (True, False):
        rows = history_of(with_tickets=with_tickets)
        put, get = find(rows, "put", 111), find(rows, "get", 111)
        put["invoke_ns"], put["return_ns"] = 124, 125
        get["invoke_ns"], get["return_ns"] = 122, 123
        assert "fresh" in rules(rows)


def test_two_puts_at_one_position():
    rows = history_of()
    rows.append(dict(find(rows, "put", 105), worker=77, value=999))
    assert "ticket" in rules(rows)


def test_a_position_that_nobody_put():
    rows = history_of()
    rows = [row for row in rows if row["value"] != 105]
    assert rules(rows) == {"ticket"}


def test_a_position_before_the_first():
    rows = history_of()
    find(rows, "put", 105)["ticket"] = -1
    assert rules(rows) == {"ticket"}


def test_a_position_far_behind_the_others_is_no_reason_to_fill_the_memory():
    rows = history_of()
    rows.append(dict(find(rows, "put", 105), worker=77, value=999, ticket=10**15))
    assert "ticket" in rules(rows, width=1 << 20)


class TestKills:
    """What a killed worker may leave, and what not."""

    def test_a_tombstone_needs_a_killed_put(self):
        rows = [row for row in history_of() if row["value"] != 105]
        killed = dict(rows[1], outcome="pending", value=105, ticket=None, invoke_ns=52, return_ns=None)
        assert rules([*rows, killed]) == set()
        assert rules([*rows, dict(killed, invoke_ns=200)]) == {"ticket"}, "it was killed long after its position"

    def test_an_item_may_go_with_its_consumer(self):
        for with_tickets in (True, False):
            rows = history_of(with_tickets=with_tickets)
            rows.remove(find(rows, "get", 105))
            killed = dict(rows[0], outcome="pending", value=None, ticket=None, invoke_ns=62, return_ns=None)
            assert rules([*rows, killed]) == set()
            assert rules([*rows, dict(killed, invoke_ns=200)]) & {"lost", "order"}, "it was killed long after"

    def test_one_killed_consumer_takes_one_item(self):
        rows = history_of()
        rows.remove(find(rows, "get", 105))
        rows.remove(find(rows, "get", 103))
        killed = dict(rows[0], outcome="pending", value=None, ticket=None, invoke_ns=0, return_ns=None)
        assert rules([*rows, killed]) == {"lost"}
        assert rules([*rows, killed, dict(killed, worker=78)]) == set()

    def test_a_redelivered_item_leaves_the_order(self):
        for with_tickets in (True, False):
            rows = history_of(with_tickets=with_tickets)
            get = find(rows, "get", 105)
            get.update(redelivered=True, invoke_ns=110, return_ns=111)
            assert rules(rows, capacity=8) == set()

    def test_a_redelivered_item_is_committed_once(self):
        for with_tickets in (True, False):
            rows = history_of(with_tickets=with_tickets)
            again = dict(find(rows, "get", 105), redelivered=True, worker=77, invoke_ns=110, return_ns=111)
            assert rules([*rows, again]) == {"repeat"}
            killed = dict(find(rows, "get", 105), outcome="pending", return_ns=None)
            rest = [row for row in rows if row != find(rows, "get", 105)]
            assert rules([*rest, killed, again], capacity=8) == set()
            assert "repeat" in rules([*rest, again, dict(again, worker=78, invoke_ns=112, return_ns=113)], capacity=8)

    def test_a_redelivered_item_was_put(self):
        rows = history_of()
        again = dict(find(rows, "get", 105), redelivered=True, value=999, ticket=None)
        assert "fresh" in rules([*rows, again])


class TestOverwriting:
    def history(self):
        """Capacity 2: items 1 and 2 are overwritten before the second get."""
        puts = [Op("put", "ok", 100 + n, n, 10 * n, 10 * n + 2) for n in range(5)]
        gets = [Op("get", "ok", 100, 0, 5, 6), Op("get", "ok", 103, 3, 50, 51), Op("get", "ok", 104, 4, 52, 53)]
        return records([*puts, *gets])

    def test_overwritten_items_may_be_missing(self):
        self.check(self.history())

    def check(self, rows, *expected):
        found = {violation.rule for violation in verdict_on(rows, "overwriting", 2, 2).violations}
        assert found == set(expected)

    def test_a_gap_that_nothing_overwrote(self):
        rows = self.history()
        self.check(rows)
        rows.remove(find(rows, "get", 103))
        self.check(rows, "lost")

    def test_a_gap_before_the_put_that_made_it(self):
        rows = self.history()
        find(rows, "get", 103).update(invoke_ns=33, return_ns=34)
        self.check(rows, "lost")

    def test_an_item_that_had_been_overwritten(self):
        rows = self.history()
        find(rows, "get", 100).update(invoke_ns=25, return_ns=26)
        self.check(rows, "capacity")


class TestReaders:
    def history(self):
        puts = [Op("put", "ok", 100 + n, n, 10 * n, 10 * n + 2) for n in range(5)]
        reads = [Op("get", "ok", 100 + n, n, 10 * n + 4 + x, 10 * n + 5 + x, x) for n in range(5) for x in (0, 1)]
        return records([*puts, *reads, Op("get", "empty", None, 5, 60, 61, 0)])

    def check(self, rows, *expected):
        found = {violation.rule for violation in verdict_on(rows, "events", None, 2).violations}
        assert found >= set(expected)
        assert bool(found) == bool(expected)
        without = [dict(row, ticket=None) for row in rows]
        assert {violation.rule for violation in verdict_on(without, "events", None).violations} >= set(expected)

    def get(self, rows, reader, value):
        return next(row for row in rows if row["reader"] == reader and row["value"] == value)

    def test_every_reader_gets_everything(self):
        self.check(self.history())

    def test_a_reader_may_begin_late(self):
        rows = self.history()
        rows.remove(self.get(rows, 1, 100))
        self.check(rows)

    def test_a_reader_must_not_pass_over_an_item(self):
        rows = self.history()
        rows.remove(self.get(rows, 1, 102))
        self.check(rows, "lost")

    def test_a_reader_must_not_get_an_item_twice(self):
        rows = self.history()
        rows.append(dict(self.get(rows, 1, 102), worker=77, invoke_ns=70, return_ns=71))
        self.check(rows, "repeat")

    def test_a_false_empty(self):
        rows = self.history()
        rows.append(dict(rows[-1], worker=77, ticket=3, reader=1, invoke_ns=33, return_ns=34))
        self.check(rows, "empty")


def test_a_weak_answer_may_meet_a_put_in_the_middle_but_not_one_that_has_returned():
    rows = history_of()
    find(rows, "put", 105).update(invoke_ns=52, return_ns=57)
    find(rows, "get", 104).update(invoke_ns=50, return_ns=51)
    weak = dict(rows[0], weak=True, ticket=5, worker=77, invoke_ns=55, return_ns=56)
    assert rules([*rows, weak]) == set()
    assert rules([*rows, dict(weak, invoke_ns=58, return_ns=59)]) == {"empty"}


@pytest.mark.parametrize("kind", ["bounded", "overwriting", "events"])
def test_every_fault_that_a_search_knows_is_the_same_in_buckets_of_any_width(kind):
    """The order of the witnesses may differ, the counts of the rules may not."""
    for seed in range(30):
        chance = random.Random(seed)
        history = run(chance, kind, None if kind == "events" else 2, with_tickets=True, with_kills=False)
        rows = records(history)
        if len(rows) > 2:
            rows[1]["invoke_ns"], rows[2]["invoke_ns"] = -5, rows[2]["return_ns"]
        capacity = None if kind == "events" else 2
        counts = [verdict_on(rows, kind, capacity, width).counts for width in (1, 2, 5, 1 << 20)]
        assert all(each == counts[0] for each in counts), rows
