"""A monitor on real queues, with real processes that put, read and are killed."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import queueduct
from queueduct.monitoring import Detail, Monitor, ParticipantSeen, QueueSeen, State, Status, as_json
from tests.support.deadline import until
from tests.support.kinds import CLASSES

INTERVAL = 0.05


@pytest.fixture
def monitor() -> Iterator[Monitor]:
    with Monitor(interval=INTERVAL, window=0.5, history=60) as made:
        yield made


def look(monitor: Monitor, name: str = "q") -> QueueSeen:
    found = monitor.look().queue(name)
    assert found is not None
    return found


def watched_until(monitor: Monitor, condition: Callable[[QueueSeen], object], name: str = "q") -> QueueSeen:
    """Looks every few milliseconds, as the views do more slowly."""
    seen: list[QueueSeen] = []

    def holds() -> object:
        seen[:] = [look(monitor, name)]
        return condition(seen[0])

    until(holds, "what a monitor should see")
    return seen[0]


def detail_of(monitor: Monitor, name: str = "q") -> Detail:
    found = monitor.detail(name)
    assert found is not None
    return found


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


def test_a_reader_is_ok_then_stalled_when_it_stops_then_ok_again(monitor):
    with queueduct.EventQueue.create("q", item="f8") as q, q.subscribe("slow") as reader:
        q.put(1.0)
        reader.get()
        reader.commit()
        (seen,) = look(monitor).readers
        assert (seen.name, seen.label, seen.lag, seen.lag_seconds, seen.status) == ("slow", "slow", 0, 0.0, Status.OK)
        q.put_many([1.0] * 10)
        stalled = watched_until(monitor, lambda seen: seen.worst == Status.STALLED)
        assert stalled.readers[0].lag == 10
        reader.get_many(4)
        reader.commit()
        assert look(monitor).readers[0].status == Status.OK
        assert look(monitor).readers[0].items_out > 0


def test_a_reader_that_is_slower_than_the_producers_is_behind(monitor):
    with queueduct.EventQueue.create("q", item="f8") as q, q.subscribe() as reader:

        def work(seen: QueueSeen) -> bool:
            q.put_many([1.0] * 10)
            reader.get_many(3)
            return seen.worst == Status.BEHIND

        seen = watched_until(monitor, work)
        assert seen.readers[0].label == "(ephemeral 1)"
        assert seen.readers[0].is_attached


def test_a_durable_reader_that_nobody_has_is_unattended_also_when_its_process_was_killed(monitor, children):
    with queueduct.EventQueue.create("q", item="f8") as q:
        ready, told = os.pipe()

        def read_for_ever() -> None:
            with queueduct.open("q") as mine, mine.subscribe("archive"):
                os.write(told, b"!")
                time.sleep(60)

        pid = children.fork(read_for_ever)
        assert os.read(ready, 1) == b"!"
        assert look(monitor).worst == Status.OK
        children.kill(pid)
        assert look(monitor).worst == Status.UNATTENDED
        os.close(ready)
        os.close(told)
        assert q.stats().readers == 1


def test_a_dropped_reader_is_the_worst_and_a_loss(monitor):
    with (
        queueduct.EventQueue.create("q", item="f8", max_bytes=1 << 20, on_full="drop_slowest") as q,
        q.subscribe("slow", start="earliest"),
    ):
        for _ in range(30):
            q.put_many([1.0] * 10000)
        seen = look(monitor)
        assert (seen.worst, seen.losses["readers_dropped"]) == (Status.DROPPED, 1)


def test_the_lag_in_seconds_is_the_age_of_the_first_item_that_is_not_read(monitor):
    with queueduct.EventQueue.create("q", item="f8") as q, q.subscribe("slow") as reader:
        put_at = []
        for number in range(20):
            look(monitor)
            q.put(float(number))
            put_at.append(time.monotonic())
            look(monitor)
            time.sleep(0.005)
        reader.get_many(7)
        reader.commit()
        (seen,) = look(monitor).readers
        assert seen.lag == 13
        assert not seen.is_lag_longer
        assert seen.lag_seconds == pytest.approx(time.monotonic() - put_at[7], abs=0.05)
        assert look(monitor).oldest_seconds == pytest.approx(time.monotonic() - put_at[7], abs=0.05)


def test_a_lag_from_before_the_monitor_is_at_least_as_long_as_it_has_watched():
    with queueduct.EventQueue.create("q", item="f8") as q, q.subscribe("slow"):
        q.put(1.0)
        with Monitor() as monitor:
            began = time.monotonic()
            look(monitor)
            (seen,) = look(monitor).readers
            assert seen.is_lag_longer
            assert 0 <= seen.lag_seconds <= time.monotonic() - began


@pytest.mark.parametrize("kind", ["bounded", "growing", "overwriting", "slots"])
def test_the_oldest_item_of_a_queue_ages_until_it_is_got(monitor, kind):
    with CLASSES[kind].create("q", item="f8") as q:
        assert look(monitor).oldest_seconds == 0
        q.put(1.0)
        put_at = time.monotonic()
        until(lambda: look(monitor).oldest_seconds > 0.05, "an old item")
        seen = look(monitor)
        assert seen.oldest_seconds == pytest.approx(time.monotonic() - put_at, abs=0.05)
        assert not seen.is_oldest_longer
        q.put(2.0)
        q.get()
        assert look(monitor).oldest_seconds < seen.oldest_seconds
        q.get()
        assert look(monitor).oldest_seconds == 0


def by_pid(seen: QueueSeen, pid: int) -> list[ParticipantSeen]:
    return [each for each in seen.participants if each.pid == pid]


@pytest.mark.parametrize("kind", CLASSES)
def test_a_killed_producer_is_missed_at_the_next_look(monitor, children, kind):
    with CLASSES[kind].create("q", item="f8") as q:

        def put_for_ever() -> None:
            with queueduct.open("q") as mine:
                while True:
                    mine.try_put(1.0) or time.sleep(0.01)

        pid = children.fork(put_for_ever)
        seen = watched_until(monitor, lambda seen: by_pid(seen, pid))
        assert by_pid(seen, pid)[0].state == "alive"
        assert by_pid(seen, pid)[0].command
        children.kill(pid)
        seen = look(monitor)
        (missed,) = by_pid(seen, pid)
        assert missed.state in ("gone", "dead")
        assert seen.alive == 0
        assert seen.gone + seen.dead == 1
        if q.kind != "events":
            q.get_many(100)  # an operation recovers what a dead one left
        (missed,) = by_pid(watched_until(monitor, lambda seen: seen.gone == 1), pid)
        assert missed.left_seconds is not None
        assert missed.items_in == 0


def test_a_killed_process_that_its_parent_has_not_asked_for_is_gone(monitor, children):
    """It keeps its pid and its start until then."""
    with queueduct.BoundedQueue.create("q", 16) as q:

        def put_once() -> None:
            with queueduct.open("q") as mine:
                mine.put(b"a")
                time.sleep(60)

        pid = children.fork(put_once)
        watched_until(monitor, lambda seen: by_pid(seen, pid))
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        (missed,) = by_pid(look(monitor), pid)
        assert missed.state == "gone"
        assert children.wait(pid) == -signal.SIGKILL
        assert q.qsize() == 1


def test_what_a_killed_consumer_held_makes_it_dead_and_its_redelivery_a_recovery(monitor, children):
    with queueduct.BoundedQueue.create("q", 16) as q:
        q.put_many([b"a", b"b"])
        ready, told = os.pipe()

        def hold() -> None:
            with queueduct.open("q") as mine:
                held = mine.lease(2)
                os.write(told, b"!")
                time.sleep(60)
                held.release()

        pid = children.fork(hold)
        assert os.read(ready, 1) == b"!"
        assert look(monitor).leased == 2
        children.kill(pid)
        seen = look(monitor)
        assert (seen.dead, seen.leased) == (1, 0)
        with q.lease(2):
            pass
        seen = look(monitor)
        assert (seen.dead, seen.gone, seen.recoveries["redelivered"]) == (0, 1, 2)
        os.close(ready)
        os.close(told)


def test_threads_and_leases_that_come_and_go_are_not_missed_as_long_as_their_process_takes_part(monitor):
    with queueduct.BoundedQueue.create("q", 16) as q:
        q.put(b"a")
        with q.lease(1):
            thread = threading.Thread(target=lambda: q.put(b"b"))
            thread.start()
            assert look(monitor).alive >= 2
            thread.join()
        seen = watched_until(monitor, lambda seen: seen.alive == 1)
        assert [each.state for each in seen.participants] == ["alive"]


@pytest.mark.parametrize("kind", CLASSES)
def test_a_process_that_closes_its_handle_and_goes_on_has_left(monitor, kind):
    first = CLASSES[kind].create("q", item="f8")
    first.put(1.0)
    assert look(monitor).alive == 1
    first.close()
    seen = look(monitor)
    assert [(each.pid, each.state) for each in seen.participants] == [(os.getpid(), "left")]
    assert (seen.alive, seen.gone, seen.dead) == (0, 0, 0)
    with queueduct.open("q") as again:
        again.put(2.0)
        assert [each.state for each in look(monitor).participants] == ["alive"]


def test_the_rate_of_each_participant_is_its_own(monitor, children):
    with queueduct.OverwritingQueue.create("q", 64, item="f8") as q:

        def put_slowly() -> None:
            with queueduct.open("q") as mine:
                while True:
                    mine.put(1.0)
                    time.sleep(0.001)

        q.put(1.0)
        pid = children.fork(put_slowly)
        seen = watched_until(monitor, lambda seen: any(each.items_in > 0 for each in by_pid(seen, pid)))
        assert [each.items_in for each in by_pid(seen, os.getpid())] == [0]


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
