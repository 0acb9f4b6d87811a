"""Stress runs of every kind, between threads and between processes, with kills and without: short, and looked through.

The proof of a history is the checker's; here it is looked at with what recorded.py knows.
"""

from __future__ import annotations

import numpy as np
import pytest
from rich.console import Console

import queueduct
from queueduct.segments.kinds import KINDS
from queueduct.verification.stress.run import Options, run
from tests.verification.stress.recorded import NEVER, Recorded, problems

QUIET = Console(quiet=True)


@pytest.fixture
def target(tmp_path):
    return tmp_path / "history"


def recorded(target, kind, **options):
    result = run(Options(kind, history=target, **options), QUIET)
    history = Recorded(target)
    assert len(history) == result.rows == history.manifest["operations"]
    assert queueduct.queues() == []
    return result, history


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch", [1, 32])
def test_between_threads_nothing_is_wrong(kind, batch, target):
    result, history = recorded(target, kind, threads=True, producers=2, consumers=2, ops=40_000, batch=batch, seed=3)
    assert problems(history) == []
    assert not history.where("get", "pending").size or kind == "overwriting"
    assert not history.where("put", "pending").size
    assert result.put == len(history.where("put", "ok"))
    assert result.got == len(history.where("get", "ok"))
    assert result.torn == 0
    if kind in ("bounded", "growing", "slots"):
        assert result.left == 0
        assert result.put == result.got == 20_000
    if kind == "events":
        assert result.got == 2 * result.put


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_between_processes_nothing_is_wrong(kind, target, is_long):
    result, history = recorded(target, kind, producers=2, consumers=2, ops=10_000_000 if is_long else 200_000, seed=4)
    assert problems(history) == []
    assert (result.killed, result.torn) == (0, 0)
    assert not history.where("put", "pending").size


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_between_processes_that_are_killed_nothing_is_wrong(kind, tmp_path, is_long):
    killed = 0
    for seed in range(20):  # a quick machine may be done before the first kill
        options = {"ops": 1_000_000 if is_long else 60_000, "capacity": 4, "batch": 2, "item_bytes": 512}
        result, history = recorded(tmp_path / str(seed), kind, producers=2, consumers=2, kill=100, seed=seed, **options)
        assert problems(history) == []
        assert result.torn == 0
        assert result.killed == history.manifest["killed"]
        assert 4 <= history.manifest["workers"] <= 4 + result.killed  # whose work was done is not replaced
        pending = history.outcome == "pending"
        assert (history.returned[pending] == NEVER).all()
        assert pending.sum() <= 2 * result.killed or kind == "overwriting", "a killed worker leaves one call pending"
        killed += result.killed
        if killed >= (100 if is_long else 2):
            return
    pytest.fail(f"{killed} workers were killed in 20 runs")


def test_positions_count_from_0_without_a_gap(target):
    _, history = recorded(target, "bounded", threads=True, producers=2, consumers=2, ops=10_000)
    for op in ("put", "get"):
        assert np.array_equal(np.sort(history.ticket[history.where(op, "ok")]), np.arange(5_000))


def test_tries_are_answered_full_and_empty_with_their_positions(target):
    mix = (("put", 0), ("try_put", 1), ("get", 0), ("try_get", 1))
    _, history = recorded(
        target, "bounded", threads=True, producers=2, consumers=2, ops=40_000, batch=1, capacity=2, mix=mix
    )
    assert problems(history) == []
    full, empty = history.where("put", "full"), history.where("get", "empty")
    assert full.size
    assert empty.size
    assert (history.ticket[full] >= 0).all()
    assert (history.ticket[empty] >= 0).all()
    assert (history.value[np.concatenate([full, empty])] == -1).all()


def test_each_reader_of_events_has_a_number_and_sees_every_item(target):
    _, history = recorded(target, "events", threads=True, producers=2, consumers=3, ops=8_000)
    gets = history.where("get", "ok")
    assert (history.reader[gets] == history.worker[gets]).all()
    assert (history.reader[history.where("put", "ok")] == -1).all()
    for reader in np.unique(history.reader[gets]):
        assert np.array_equal(np.sort(history.ticket[gets[history.reader[gets] == reader]]), np.arange(2_000))


def test_a_small_overwriting_queue_loses_items_and_says_at_which_positions(target):
    _, history = recorded(target, "overwriting", threads=True, producers=2, consumers=2, ops=100_000, capacity=2)
    assert problems(history) == []
    lost = history.where("get", "pending")  # taken, and overwritten while they were read
    assert (history.ticket[lost] >= 0).all()
    assert len(np.unique(history.worker[lost])) == lost.size, (
        "each of them never returned, so it has a worker to itself"
    )


def test_what_is_not_drained_stays_in_the_queue(target):
    result, history = recorded(target, "bounded", threads=True, ops=2_000, capacity=4096, drain=False)
    assert result.put == 1_000
    assert result.left == result.put - result.got
    assert problems(history) == []


def test_items_of_8_bytes_have_a_value_and_nothing_else(target):
    result, history = recorded(target, "slots", threads=True, ops=2_000, item_bytes=8)
    assert result.put == result.got == 1_000
    assert problems(history) == []


def test_the_same_run_without_a_history_records_nothing(tmp_path):
    result = run(Options("bounded", threads=True, ops=10_000), QUIET)
    assert (result.history, result.rows) == (None, 0)
    assert result.operations >= 10_000
    assert list(tmp_path.iterdir()) == []
