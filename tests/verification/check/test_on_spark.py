"""The checks on Spark, in many small buckets, say the same as in memory."""

from __future__ import annotations

import random

import pytest

from queueduct.verification.check import HistoryError, check, positions
from tests.verification.check.histories import find, history_of, row, run, spoilt
from tests.verification.check.inputs import ACCEPTED, REFUSED
from tests.verification.check.judging import records
from tests.verification.check.writing import write

WIDTH = 8


def same_as_in_memory(spark, folder, rows, kind, capacity):
    """The same verdict, counts and first witnesses. Returns the rules that were broken."""
    on_spark = check(write(folder, rows, kind, capacity), spark=spark, width=WIDTH)
    in_memory = check(folder)
    assert on_spark.operations == len(rows)
    assert (on_spark.ok, on_spark.counts, on_spark.proved) == (in_memory.ok, in_memory.counts, in_memory.proved)
    assert first_of_each(on_spark) == first_of_each(in_memory)
    assert all("worker" in witness for violation in on_spark.violations for witness in violation.witnesses)
    return set(on_spark.counts)


def first_of_each(verdict):
    """The operation that is shown for each sentence."""
    return {violation.why: violation.witnesses[0] for violation in reversed(verdict.violations)}


@pytest.mark.parametrize("with_tickets", [True, False], ids=["tickets", "order"])
def test_right_histories_pass(spark, tmp_path, with_tickets):
    rows = history_of(40, with_tickets)
    assert same_as_in_memory(spark, tmp_path / "history", rows, "bounded", 2) == set()


@pytest.mark.parametrize("with_tickets", [True, False], ids=["tickets", "order"])
def test_all_faults_at_once_are_found_with_their_witnesses(spark, tmp_path, with_tickets):
    rows = history_of(60, with_tickets)
    rows.remove(find(rows, "get", 105))  # lost
    rows.append(dict(find(rows, "get", 115), worker=77, invoke_ns=169, return_ns=170))  # doubled
    first, second = find(rows, "get", 124), find(rows, "get", 125)  # swapped
    for column in ("invoke_ns", "return_ns"):
        first[column], second[column] = second[column], first[column]
    ticket = 35 if with_tickets else None
    rows.append(dict(rows[0], worker=78, ticket=ticket, invoke_ns=359, return_ns=360))  # a false empty
    expected = {"lost", "repeat", "order", "empty"}
    if with_tickets:
        find(rows, "get", 145)["value"] = -5  # torn
        false = dict(rows[0], op="put", outcome="full", worker=79, ticket=50, invoke_ns=509, return_ns=510)
        rows.append(false)
        expected |= {"torn", "full"}
    found = same_as_in_memory(spark, tmp_path / "history", rows, "bounded", 2)
    assert expected <= found
    verdict = check(tmp_path / "history", spark=spark, width=WIDTH)
    lost = next(violation for violation in verdict.violations if violation.rule == "lost")
    assert lost.witnesses[0]["value"] == 105
    repeat = next(violation for violation in verdict.violations if violation.rule == "repeat")
    assert all(witness["value"] == 115 and witness["worker"] for witness in repeat.witnesses)
    order = [violation for violation in verdict.violations if violation.rule == "order"]
    assert any({witness.get("value") for witness in each.witnesses} == {124, 125} for each in order)


@pytest.mark.parametrize("kind", ["overwriting", "events", "growing"])
def test_random_histories_with_kills(spark, tmp_path, kind):
    """One that is right and one that is not."""
    chance = random.Random(5)
    capacity = 3 if kind == "overwriting" else None
    history = run(chance, kind, capacity, with_tickets=True, with_kills=True, turns=60)
    history = [op for op in history if op.outcome != "full"]
    assert same_as_in_memory(spark, tmp_path / "right", records(history), kind, capacity) == set()
    for _ in range(6):
        history = spoilt(chance, history, capacity)
    assert same_as_in_memory(spark, tmp_path / "wrong", records(history), kind, capacity)


def test_a_put_that_was_killed_too_late_for_the_one_behind_it_to_have_overwritten(spark, tmp_path):
    """Of 30 items the last 20 are left; item 9 was passed over soon, item 29 overwrote it, and 28 is a tombstone."""
    puts = [row(0, "put", "ok", 100 + n, n, n, 200 if n == 29 else n + 1) for n in range(30) if n != 28]
    rows = [*puts, row(1, "get", "ok", 110, 10, 40, 41), row(2, "put", "pending", 128, None, 42)]
    assert same_as_in_memory(spark, tmp_path / "wrong", rows, "overwriting", 20) == {"lost"}
    rows[-1].update(invoke_ns=41)
    assert same_as_in_memory(spark, tmp_path / "right", rows, "overwriting", 20) == set()


def test_somebody_who_asks_in_vain_all_the_time_fills_no_memory(spark, tmp_path):
    rows = history_of(20)
    rows += [dict(rows[-1], worker=100 + n, invoke_ns=210 + n, return_ns=211 + n) for n in range(3 * WIDTH)]
    assert same_as_in_memory(spark, tmp_path / "right", rows, "bounded", 2) == set()
    rows[-2].update(ticket=19, invoke_ns=300, return_ns=301)
    assert same_as_in_memory(spark, tmp_path / "wrong", rows, "bounded", 2) == {"empty"}


@pytest.mark.parametrize(
    ("capacity", "times", "expected"), [(2, (59, 300), set()), (2, (59, 60), {"full"}), (3, (59, 300), {"full"})]
)
def test_a_full_answer_without_a_ticket(spark, tmp_path, capacity, times, expected):
    rows = history_of(40, with_tickets=False)
    rows.append(dict(rows[0], op="put", outcome="full", worker=77, invoke_ns=times[0], return_ns=times[1]))
    assert same_as_in_memory(spark, tmp_path / "history", rows, "bounded", capacity) == expected


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("with_tickets", [True, False], ids=["tickets", "order"])
@pytest.mark.parametrize("kind", ["bounded", "slots", "overwriting", "events", "unbounded"])
def test_many_random_histories(spark, tmp_path, kind, with_tickets):
    for seed in range(20):
        chance = random.Random(seed)
        capacity = 2 if kind in ("bounded", "slots", "overwriting") else None
        history = run(chance, kind, capacity, with_tickets, with_kills=seed % 2 == 1, turns=30)
        for _ in range(seed % 3):
            history = spoilt(chance, history, capacity)
        same_as_in_memory(spark, tmp_path / str(seed), records(history), kind, capacity)


def test_bad_input_is_refused_on_spark_as_well(spark, tmp_path):
    rows = history_of()
    rows[3]["return_ns"] = -1
    with pytest.raises(HistoryError, match="clock must not go backwards"):
        check(write(tmp_path / "backwards", rows, "bounded", 2), spark=spark, width=WIDTH)
    rows = history_of(with_tickets=False)
    rows += [dict(row, worker=99) for row in rows if row["op"] == "put"]
    with pytest.raises(HistoryError, match="values must be unique"):
        check(write(tmp_path / "mixed", rows, "bounded", 2), spark=spark, width=WIDTH)


@pytest.mark.parametrize("writer", ACCEPTED.values(), ids=ACCEPTED)
def test_what_others_write_is_read_whole(spark, tmp_path, writer):
    writer(tmp_path / "history")
    verdict = check(tmp_path / "history", spark=spark, width=WIDTH)
    assert verdict.ok
    assert verdict.operations == 42


@pytest.mark.parametrize(("writer", "words"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_checked_is_refused_by_name(spark, tmp_path, writer, words):
    writer(tmp_path / "history")
    with pytest.raises(HistoryError, match=words) as caught:
        check(tmp_path / "history", spark=spark, width=WIDTH)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("ticket", [(1 << 63) - 1, -(1 << 63)])
def test_a_position_that_no_queue_gives(spark, tmp_path, ticket):
    rows = history_of(20)
    rows[1]["ticket"] = ticket
    verdict = check(write(tmp_path / "history", rows, "bounded", 2, first_ticket=5), spark=spark, width=WIDTH)
    assert set(verdict.counts) == {"ticket"}


def test_a_damaged_file_is_refused_though_spark_is_told_to_ignore_it(spark, tmp_path):
    REFUSED["damaged"][0](tmp_path / "history")
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    try:
        with pytest.raises(HistoryError, match=r"must be whole: .*a\.parquet"):
            check(tmp_path / "history", spark=spark, width=WIDTH)
    finally:
        spark.conf.unset("spark.sql.files.ignoreCorruptFiles")


def test_what_spark_leaves_beside_a_file_is_no_part_of_the_history(spark, tmp_path):
    folder = write(tmp_path / "history", history_of(20), "bounded", 2)
    (folder / ".worker-00000.parquet.crc").write_bytes(b"crc\0" + bytes(8))
    assert check(folder, spark=spark, width=WIDTH).ok
    assert check(folder).ok


def test_an_answer_that_is_first_and_last_counts_once(spark, tmp_path):
    rows = history_of(20)
    rows += [dict(rows[-1], worker=100 + n, invoke_ns=210 + n, return_ns=211 + n) for n in range(3 * WIDTH)]
    rows[-1].update(ticket=19, weak=True, invoke_ns=300, return_ns=301)
    on_spark = check(write(tmp_path / "history", rows, "bounded", 2), spark=spark, width=WIDTH)
    assert on_spark.counts == check(tmp_path / "history").counts


def test_an_error_of_spark_is_one_line_with_its_cause(spark, tmp_path, monkeypatch):
    def fails(*_, **__):
        raise KeyError("of the worker")

    monkeypatch.setattr(positions, "judge_task", fails)
    ACCEPTED["files"](tmp_path / "history")
    with pytest.raises(RuntimeError, match=r"^KeyError: 'of the worker'$"):
        check(tmp_path / "history", spark=spark, width=WIDTH)


def test_values_in_no_order_may_be_unique(spark, tmp_path):
    rows = history_of(20)
    for each in rows:
        each["value"] = None if each["value"] is None else each["value"] * 7919 % 101
    assert same_as_in_memory(spark, tmp_path / "history", rows, "bounded", 2) == set()
