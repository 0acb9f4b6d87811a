"""shutdown, clear, keep-last, repair, readers: what they change, and what they say."""

from __future__ import annotations

import json
import os
import signal

import numpy as np
import pytest

import queueduct
from tests.support.command import call, done, refused
from tests.support.kinds import CLASSES

CONSUMED = [kind for kind in CLASSES if kind != "events"]


@pytest.mark.parametrize("kind", CLASSES)
def test_a_shutdown_leaves_what_is_there_and_takes_nothing_more(kind):
    with CLASSES[kind].create("q", item="i8") as queue:
        queue.put_many([1, 2])
        assert done("shutdown", "q") == "q is shut down; 2 items are left to get\n"
        with pytest.raises(queueduct.ShutDown):
            queue.put(3)
        row = json.loads(done("shutdown", "q", "--json"))
        assert row == {"name": "q", "was_shut_down": True, "immediate": False, "left": 2}
        assert "shut down" in done("ls")


@pytest.mark.parametrize("kind", CONSUMED)
def test_an_immediate_shutdown_drops_what_is_there(kind):
    with CLASSES[kind].create("q", item="i8") as queue:
        queue.put_many([1, 2])
        assert done("shutdown", "q", "--immediate") == "q is shut down; 2 items were dropped\n"
        with pytest.raises(queueduct.ShutDown):
            queue.get(timeout=1)


@pytest.mark.parametrize("kind", CLASSES)
def test_clear_removes_what_is_there_and_nobody_elses_lease(kind):
    with CLASSES[kind].create("q", item="i8") as queue:
        queue.put_many([1, 2, 3, 4])
        lease = queue.lease(1) if kind != "events" else None
        removed = 4 if lease is None else 3
        assert done("clear", "q") == f"removed {removed} items of q\n"
        assert json.loads(done("clear", "q", "--json")) == {"name": "q", "removed": 0}
        if lease is not None:
            assert lease.items.tolist() == [1]
            lease.release()
        queue.put(5)
        assert queue.stats().size == 1


def test_keep_last_is_for_logs():
    with queueduct.EventQueue.create("log", item="i8") as log:
        log.put_many(range(10))
        assert done("keep-last", "log", "3") == "removed 7 items of log\n"
        assert log.read(log.earliest, log.end).tolist() == [7, 8, 9]
        assert json.loads(done("keep-last", "log", "1k", "--json")) == {"name": "log", "removed": 0}
    queueduct.BoundedQueue.create("jobs", 4).close()
    assert "queueduct clear jobs removes all items" in refused("keep-last", "jobs", "3")


def test_repair_says_what_it_did(children):
    """A consumer is killed with a lease, and a log's reader with its process."""
    with queueduct.BoundedQueue.create("jobs", 8) as jobs, queueduct.EventQueue.create("log") as log:
        jobs.put_many([b"a", b"b"])
        log.put(b"x")

        def hold():
            mine, reading = queueduct.open("jobs"), queueduct.open("log").subscribe()
            kept = mine.lease(2), reading
            os.kill(os.getpid(), signal.SIGKILL)
            return kept

        assert children.wait(children.fork(hold)) == -signal.SIGKILL
        rows = json.loads(done("repair", "jobs", "log", "--json"))
        assert [row["name"] for row in rows] == ["jobs", "log"]
        assert sorted(jobs.get() for _ in range(2)) == [b"a", b"b"]
        assert done("repair", "jobs", "log").splitlines() == [
            "jobs: nothing was to be repaired",
            "log: nothing was to be repaired",
        ]


def test_repair_lets_dead_participants_go(children):
    with queueduct.SlotQueue.create("frames", 4, item="i8") as frames:
        frames.put(1)

        def hold():
            slot = queueduct.open("frames").take()
            os.kill(os.getpid(), signal.SIGKILL)
            return slot

        assert children.wait(children.fork(hold)) == -signal.SIGKILL
        assert "dead participants were let go" in done("repair", "frames")
        assert frames.get(timeout=10) == 1


def test_repair_of_what_cannot_be_is_a_failure_and_the_others_are_repaired(queue_dir):
    queueduct.BoundedQueue.create("good", 4).close()
    queueduct.BoundedQueue.create("bad", 4).close()
    (queue_dir / "bad").write_bytes(b"nonsense" * 1000)
    result = call("repair", "bad", "good", "missing")
    assert result.exit_code == 1
    assert result.stdout == "good: nothing was to be repaired\n"
    assert "there is no queue named 'missing'" in result.stderr


def test_readers_are_listed_with_lag_and_status_and_one_can_be_dropped():
    with queueduct.EventQueue.create("ticks", item=np.dtype([("px", "f8")])) as ticks:
        assert "nobody reads ticks; queueduct tail ticks --reader NAME" in done("readers", "ticks")
        lake, live = ticks.subscribe("lake", start="earliest"), ticks.subscribe()
        ticks.put_many([(1.0,), (2.0,)])
        live.get_many(2)
        lake.close()
        rows = {row["label"]: row for row in json.loads(done("readers", "ticks", "--json"))}
        assert (rows["lake"]["lag"], rows["lake"]["status"], rows["lake"]["is_attached"]) == (2, "unattended", False)
        assert len(rows) == 2
        assert "unattended" in done("readers", "ticks")
        assert "it has lake" in refused("readers", "ticks", "--drop", "pond")
        assert done("readers", "ticks", "--drop", "lake") == "dropped lake: 2 items of ticks were not read by it\n"
        assert [reader.name for reader in ticks.readers()] == [None]
        held = ticks.subscribe("held")
        assert "is held by a live process" in refused("readers", "ticks", "--drop", "held", code=1)
        held.close()
    queueduct.BoundedQueue.create("jobs", 4).close()
    assert "only a log (events) has readers" in refused("readers", "jobs")


def test_stat_shows_readers_producers_and_participants():
    with queueduct.EventQueue.create("ticks", item="f8") as ticks:
        ticks.subscribe("lake").close()
        ticks.put_once([1.5, 2.5], "feed-1", 17)
        text = done("stat", "ticks")
        for title in ("\nreaders\n", "\nproducers\n", "\nparticipants\n"):
            assert title in text
        assert "lake" in text
        assert "2 of 2" in text
        details = json.loads(done("stat", "ticks", "--json"))["details"]
        assert details["producers"] == [{"name": "feed-1", "sequence": 17, "done": 2, "total": 2}]
        assert [each["pid"] for each in details["participants"]] == [os.getpid()]


@pytest.mark.parametrize("command", ["shutdown", "clear", "repair", "stat", "readers"])
def test_a_missing_queue_is_one_line(command):
    assert "there is no queue named 'missing'" in call(command, "missing").stderr
    assert call(command, "missing").exit_code == 1


@pytest.mark.parametrize(
    "command", ["stat", "put", "get", "tail", "clear", "shutdown", "rm", "repair", "readers", "hz"]
)
def test_a_queue_that_is_not_there_is_told_with_what_to_do(command):
    why = call(command, "tick").stderr
    assert "there is no queue named 'tick'" in why
    assert "queueduct ls lists those that are there, queueduct create makes one" in why
