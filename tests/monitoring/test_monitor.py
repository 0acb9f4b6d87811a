"""A monitor on real queues: what it says of each, and what happens to one that goes, or goes bad."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pytest

import queueduct
from queueduct.monitoring import Monitor, State, as_json
from tests.monitoring.looking import detail_of, look, watched_until
from tests.support.deadline import until
from tests.support.kinds import CLASSES


@pytest.mark.parametrize("kind", CLASSES)
def test_every_kind_says_what_its_own_stats_say(monitor, kind):
    with CLASSES[kind].create("q", item="f8") as q:
        q.put_many([1.0, 2.0, 3.0])
        seen = look(monitor)
        stats = q.stats()
        assert (seen.name, seen.kind, seen.item, seen.depth) == ("q", kind, "float64", 3)
        assert (seen.state, seen.error, seen.creator, seen.created) == (State.OPEN, None, os.getpid(), q.created)
        assert seen.segment == q.segment_id.hex()
        assert seen.totals == stats[-7:]
        assert (seen.totals.items_put, seen.totals.bytes_put) == (3, 24)
        assert seen.resident_bytes == stats.resident_bytes > 0
        assert (seen.alive, seen.dead, seen.gone) == (1, 0, 0)
        for name, count in {**seen.recoveries, **seen.losses}.items():
            assert getattr(stats, name) == count == 0
        assert detail_of(monitor).stats == stats._asdict()
        q.shutdown()
        assert look(monitor).state == State.SHUT_DOWN


@pytest.mark.parametrize("kind", CLASSES)
def test_the_rates_are_what_was_put_and_got_over_the_time(monitor, kind):
    sizes = {} if kind in ("events", "growing") else {"capacity": 4096}
    with CLASSES[kind].create("q", item="f8", **sizes) as q:
        consumer = q.subscribe() if kind == "events" else q
        before = time.monotonic()
        look(monitor)
        between = time.monotonic()
        for _ in range(50):
            q.put_many([1.0] * 3)
            consumer.get_many(2)
            if kind == "slots":
                q.get()
        nearly = time.monotonic()
        seen = look(monitor)
        after = time.monotonic()
        assert 150 / (after - before) <= seen.rates.items_in <= 150 / (nearly - between)
        assert 0 < seen.rates.items_out <= seen.rates.items_in
        assert seen.rates.bytes_in == pytest.approx(8 * seen.rates.items_in)
        assert seen.rates.bytes_out == pytest.approx(8 * seen.rates.items_out)
        until(lambda: look(monitor).rates.items_in == 0, "the rate of nothing")


@pytest.mark.parametrize(
    ("make", "fill"),
    [
        (lambda: queueduct.BoundedQueue.create("q", 8, slot_bytes=64), 2 / 8),
        (lambda: queueduct.OverwritingQueue.create("q", 8, message_bytes=64), 2 / 8),
        (lambda: queueduct.SlotQueue.create("q", 8, slot_bytes=64), 2 / 8),
        (lambda: queueduct.GrowingQueue.create("q"), None),
    ],
)
def test_the_fill_is_of_what_fills_first(monitor, make, fill):
    with make() as q:
        q.put_many([b"a" * 64, b"b" * 64])
        assert look(monitor).fill == fill


def test_a_long_item_fills_the_slots_that_it_takes_and_bytes_fill_a_log(monitor):
    with (
        queueduct.BoundedQueue.create("q", 8, slot_bytes=16) as q,
        queueduct.EventQueue.create("log", item="f8", max_bytes=1 << 20) as log,
    ):
        q.put(b"a" * 64)
        assert look(monitor).fill == 4 / 8
        log.put_many([1.0] * 60000)
        seen = look(monitor, "log")
        assert seen.fill == log.stats().used_bytes / (1 << 20)
        assert 0.4 < seen.fill < 1


def test_waits_are_counted_by_what_is_waited_for(monitor, children):
    with queueduct.BoundedQueue.create("q", 2) as q:
        look(monitor)
        with pytest.raises(queueduct.Empty):
            q.get(timeout=0.01)
        q.put_many([b"a", b"b"])
        with pytest.raises(queueduct.Full):
            q.put(b"c", timeout=0.01)
        seen = look(monitor)
        assert (seen.totals.waits_for_items, seen.totals.waits_for_room) == (1, 1)
        assert seen.rates.waits_for_room == seen.rates.waits_for_items > 0
        assert seen.participants[0].waits_for_room == 1


def test_queues_are_found_let_go_and_told_from_their_successors(monitor, queue_dir):
    assert monitor.look().queues == ()
    with queueduct.BoundedQueue.create("q", 8) as q:
        q.put(b"a")
        first = look(monitor)
        q.unlink()
        assert monitor.look().queues == ()
    assert f"{queue_dir}/q" not in Path("/proc/self/maps").read_text(), "its memory is let go"
    with queueduct.BoundedQueue.create("q", 8) as q:
        second = look(monitor)
        assert (first.depth, second.depth) == (1, 0)
        assert first.segment != second.segment
        with queueduct.BoundedQueue.create("q", 8, replace=True) as third:
            assert look(monitor).segment == third.segment_id.hex() != second.segment


def test_a_queue_that_goes_bad_says_so_keeps_what_was_known_and_disturbs_no_other(monitor, queue_dir):
    with queueduct.BoundedQueue.create("bad", 8) as bad, queueduct.BoundedQueue.create("q", 8) as q:
        bad.put(b"a")
        q.put(b"a")
        assert look(monitor, "bad").state == State.OPEN
        os.truncate(queue_dir / "bad", 0)
        for _ in range(3):
            seen = look(monitor, "bad")
            assert (seen.state, seen.kind, seen.depth) == (State.CORRUPT, "bounded", 1)
            assert seen.error is not None
            assert "truncated" in seen.error
            assert (look(monitor).state, look(monitor).depth) == (State.OPEN, 1)
            monitor._refused["bad"][1].retry_at = 0.0
        assert monitor.detail("bad") is None


def test_a_segment_that_nobody_can_read_is_told_and_other_files_are_not(monitor, queue_dir):
    with queueduct.BoundedQueue.create("q", 8):
        whole = (queue_dir / "q").read_bytes()
        (queue_dir / "cut").write_bytes(whole[:100])
        (queue_dir / "noise").write_bytes(os.urandom(5000))
        (queue_dir / "empty").write_bytes(b"")
        (queue_dir / "folder").mkdir()
        (queue_dir / "link").symlink_to("q")
        os.mkfifo(queue_dir / "fifo")
        queues = monitor.look().queues
        assert [(each.name, each.state) for each in queues] == [("cut", State.CORRUPT), ("q", State.OPEN)]
        assert queues[0].error
        (queue_dir / "cut").unlink()
        assert [each.name for each in monitor.look().queues] == ["q"]


def test_a_queue_that_may_not_be_opened_is_unreadable_until_it_may(monitor, monkeypatch):
    """As root may open any file, the refusal is the kernel's other one: no descriptor is left."""
    from queueduct.monitoring import monitor as module

    really_watch = module.watch

    def refuse(name, *, directory):
        raise OSError(24, "Too many open files")

    with queueduct.BoundedQueue.create("q", 8):
        monkeypatch.setattr(module, "watch", refuse)
        seen = look(monitor)
        assert seen.state == State.UNREADABLE
        assert "Too many open files" in (seen.error or "")
        monkeypatch.setattr(module, "watch", really_watch)
        watched_until(monitor, lambda seen: seen.state == State.OPEN)


def test_a_directory_that_goes_is_told_and_one_that_comes_back_is_read(tmp_path):
    folder = tmp_path / "queues"
    with pytest.raises(FileNotFoundError):
        Monitor(folder)
    folder.mkdir()
    with Monitor(folder) as monitor:
        with queueduct.BoundedQueue.create("q", 8, directory=folder) as q:
            assert [each.name for each in monitor.look().queues] == ["q"]
            q.unlink()
        folder.rmdir()
        gone = monitor.look()
        assert gone.queues == ()
        assert "No such file" in (gone.error or "")
        folder.mkdir()
        assert monitor.look().error is None


def test_only_the_named_queues_are_watched():
    with queueduct.BoundedQueue.create("a", 8), queueduct.BoundedQueue.create("b", 8), Monitor(names=["b"]) as monitor:
        assert [each.name for each in monitor.look().queues] == ["b"]


@pytest.mark.parametrize("field", ["interval", "window", "history"])
@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf")])
def test_a_bad_span_is_an_error_with_a_remedy(field, value):
    with pytest.raises(ValueError, match=f"{field} must be a positive number of seconds: {field}={value}; try 1"):
        Monitor(**{field: value})


def test_the_history_has_a_row_for_each_look_and_the_lag_of_each_reader(monitor):
    with queueduct.EventQueue.create("q", item="f8") as q:
        look(monitor)
        look(monitor)
        with q.subscribe("late"):
            for _ in range(3):
                q.put(1.0)
                look(monitor)
            detail = detail_of(monitor)
        history = detail.history
        lengths = {len(column) for column in history[:8]} | {len(column) for column in history.lag.values()}
        assert lengths == {4}
        assert history.lag == {"late": [None, 1.0, 2.0, 3.0]}
        assert history.depth == [0.0, 1.0, 2.0, 3.0]
        assert abs(history.at[-1] - time.time()) < 5
        assert history.items_in[0] == 0
        assert all(rate > 0 for rate in history.items_in[1:])


def test_the_history_is_as_long_as_it_was_asked_for():
    with queueduct.EventQueue.create("q", item="f8"), Monitor(interval=1, history=10) as monitor:
        for _ in range(30):
            look(monitor)
        assert len(detail_of(monitor).history.at) == 10


def test_the_tree_is_json_with_plain_values(monitor):
    with queueduct.EventQueue.create("q", item="f8") as q, q.subscribe():
        q.put(1.0)
        look(monitor)
        snapshot = as_json(monitor.look())
        assert json.loads(json.dumps(snapshot, allow_nan=False)) == snapshot
        assert snapshot["queues"][0]["readers"][0]["status"] == "unknown"
        assert snapshot["queues"][0]["state"] == "open"
        json.dumps(as_json(monitor.detail("q")), allow_nan=False)
        assert as_json([float("nan"), float("inf"), b"\x01"]) == [None, None, "01"]


def test_a_monitor_is_no_participant_and_a_closed_one_looks_at_nothing():
    with queueduct.BoundedQueue.create("q", 8) as q:
        monitor = Monitor()
        assert look(monitor).alive == 0
        assert q.participants() == []
        monitor.close()
        monitor.close()
        assert monitor.detail("q") is None
        with pytest.raises(ValueError, match="closed monitor"):
            monitor.look()


def test_threads_may_look_at_once(monitor):
    with queueduct.EventQueue.create("q", item="f8") as q, q.subscribe("r"):
        q.put(1.0)
        errors: list[BaseException] = []

        def work() -> None:
            try:
                for _ in range(50):
                    look(monitor)
                    detail_of(monitor)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert errors == []
