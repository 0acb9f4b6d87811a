"""The machine goes down and is started anew: every process is gone, and every witness of the boot says another.

A crash of the machine cannot be had in a test. What it leaves is made by hand: processes that are killed, witnesses of
the boot that the log keeps set to others, and where a test is about pages that never reached the disk, garbage there.
"""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

import queueduct
from queueduct import DataLost, EventQueue
from tests.edges.kinds import KINDS, item, number_of
from tests.support.raw import RawEvents

pytestmark = pytest.mark.usefixtures("disk")


def die_after(children, work):
    """Work in a process that is then killed: nothing is closed, nothing is synced by that."""

    def body():
        kept = work()
        os.kill(os.getpid(), signal.SIGKILL)
        return kept

    assert children.wait(children.fork(body)) == -signal.SIGKILL


def start_anew():
    with RawEvents("q") as raw:
        raw.start_anew()


def reboot(children, work):
    die_after(children, work)
    start_anew()


def fill(synced, more, **options):
    """A log with so many items that are on the disk, and some more that are not."""

    def work():
        q = EventQueue.create("q", item="<i8", sync="never", exist_ok=True, **options)
        q.put_many(np.arange(q.end, q.end + synced))
        q.sync()
        if more:
            q.put_many(np.arange(q.end, q.end + more))
        return q

    return work


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_opens_after_its_processes_are_gone(children, kind):
    def work():
        q = KINDS[kind].create("q")
        for number in range(10):
            q.put(item(number))
        if kind == "events":
            q.sync()
        return q

    die_after(children, work)
    if kind == "events":
        start_anew()
    with queueduct.open("q") as q:
        assert [number_of(each) for each in KINDS[kind].consumer(q).get_many(20)] == list(range(10))
        q.put(item(10))


def test_nothing_that_was_synced_is_lost_and_the_cut_is_counted(children):
    reboot(children, fill(100, 50))
    with EventQueue.open("q") as q:
        assert (q.end, q.epoch, q.stats().epoch, q.stats().synced) == (100, 1, 1, 100)
        assert q.read(0, 100).tolist() == list(range(100))
        assert q.valid_until(0) == 100


@pytest.mark.parametrize("position", [100, 101, 149, 150, 200])
def test_a_position_of_an_older_epoch_is_valid_up_to_the_cut(children, position):
    reboot(children, fill(100, 50))
    with EventQueue.open("q") as q:
        q.put_many(np.arange(1000, 1150))
        durable = q.subscribe("d", start="earliest")
        calls = (
            lambda: q.subscribe(start=position, epoch=0).position,
            lambda: len(q.read(0, position, epoch=0)),
            lambda: durable.commit(position, epoch=0) or position,
        )
        for call in calls:
            if position <= 100:
                assert call() == position
                continue
            with pytest.raises(DataLost, match="the log was cut at 100") as lost:
                call()
            assert (lost.value.wanted, lost.value.earliest) == (position, 100)
        assert q.subscribe(start=position, epoch=1).position == position


def test_several_cuts_in_a_row_are_told_apart(children):
    """A position of epoch e is valid up to the lowest of the cuts that came after e."""
    cuts = []
    for synced, more in ((100, 10), (50, 50), (0, 70), (30, 1)):
        reboot(children, fill(synced, more))
        with EventQueue.open("q") as q:
            cuts.append(q.end)
    assert cuts == [100, 150, 150, 180]
    with EventQueue.open("q") as q:
        assert q.epoch == 4
        assert [q.valid_until(epoch) for epoch in range(5)] == [100, 150, 150, 180, 180]
        with pytest.raises(ValueError, match="epoch must be between 0 and that of 'q', 4: epoch=5"):
            q.valid_until(5)


def test_a_cut_below_earlier_ones_counts_for_all_epochs_before_it(children):
    """The disk had more at the earlier boots than at the last one: a log that lost its tail again."""
    for _ in range(3):
        reboot(children, fill(100, 0))
        EventQueue.open("q").close()
    with RawEvents("q") as raw:
        raw.set_control("synced", 42)
        raw.start_anew()
    with EventQueue.open("q") as q:
        assert (q.end, q.epoch) == (42, 4)
        assert [q.valid_until(epoch) for epoch in range(5)] == [42] * 5


def test_more_cuts_than_the_table_holds_are_data_lost_rather_than_silence(children):
    die_after(children, fill(10, 0))
    for count in range(1, 261):
        with EventQueue.open("q") as q:
            q.put(count)
            q.sync()
        start_anew()
    with EventQueue.open("q") as q:
        assert (q.end, q.epoch) == (270, 260)
        assert [q.valid_until(epoch) for epoch in (260, 259, 258, 4)] == [270, 270, 269, 15]
        assert q.valid_until(3) == q.valid_until(0) == 11  # of the oldest only the lowest cut is known


def test_a_durable_reader_that_was_beyond_the_cut_is_told_once_and_goes_on_there(children):
    def work():
        q = fill(100, 50)()
        late, early = q.subscribe("late", start="earliest"), q.subscribe("early", start="earliest")
        late.commit(140)
        early.commit(60)
        return q, late, early

    reboot(children, work)
    with EventQueue.open("q") as q:
        q.put_many(np.arange(1000, 1200))
        for call in (
            lambda r: r.get(),
            lambda r: r.get_many(5),
            lambda r: r.commit(150),
            lambda r: r.view().__enter__(),
        ):
            with q.subscribe("late") as late, pytest.raises(DataLost, match="committed position 140") as lost:
                call(late)
            assert (lost.value.wanted, lost.value.earliest) == (140, 100)
            with RawEvents("q") as raw:  # so that each call is the first after the boot
                raw.set_word(raw.reader_offset(0, "beyond"), 140)
        with q.subscribe("late") as late:
            with pytest.raises(DataLost):
                next(late)
            assert late.position == 100
            assert late.get_many(300).tolist() == list(range(1000, 1200))
        with q.subscribe("early") as early:
            assert early.get_many(300).tolist() == [*range(60, 100), *range(1000, 1200)]


def test_a_reader_that_nobody_held_yet_is_told_after_further_boots(children):
    def work():
        q = fill(100, 50)()
        reader = q.subscribe("late", start="earliest")
        reader.commit(140)
        return q, reader

    reboot(children, work)
    reboot(children, fill(300, 0))
    with EventQueue.open("q") as q, q.subscribe("late") as late:
        with pytest.raises(DataLost, match="committed position 140"):
            late.get()
        assert late.get() == 100


@pytest.mark.parametrize("sync", ["always", "interval", "never"])
def test_put_once_is_on_the_disk_when_it_returns_and_is_not_put_twice(children, sync):
    def work():
        q = EventQueue.create("q", item="<i8", sync=sync, sync_interval=3600)
        q.put_many(np.arange(10))
        assert q.put_once(np.arange(100, 110), "feed", 1) == 10
        q.put_many(np.arange(10))
        return q

    reboot(children, work)
    with EventQueue.open("q") as q:
        assert q.end >= 20
        assert q.put_once(np.arange(100, 110), "feed", 1) == 0
        assert q.read(10, 20).tolist() == list(range(100, 110))
        assert q.put_once(np.arange(5), "feed", 2) == 5


@pytest.mark.parametrize("cut", [0, 5, 10, 15, 20])
def test_what_was_rolled_back_is_not_recorded_as_done(children, cut):
    """Should ever less be on the disk than was recorded, then the record goes back with it."""

    def work():
        q = EventQueue.create("q", item="<i8", sync="never")
        q.put_many(np.arange(10))
        q.put_once(np.arange(100, 110), "feed", 1)
        return q

    die_after(children, work)
    with RawEvents("q") as raw:
        raw.set_control("synced", cut)
        raw.start_anew()
    with EventQueue.open("q") as q:
        missing = 20 - max(cut, 10)
        assert q.end == cut
        assert q.producers()[0].done == 10 - missing
        assert q.put_once(np.arange(100, 110), "feed", 1) == missing
        kept = q.read(0, q.end).tolist()
        assert kept == [*range(min(cut, 10)), *range(100, 110)]


def test_an_intent_that_was_cut_short_takes_nothing_back_that_was_counted(children):
    """Position and extent of the second part stand in the line, and the word that makes them an intent does not."""

    def work():
        q = EventQueue.create("q", item="<i8", sync="never", max_bytes=512, on_full="raise", first_items=8)
        reader = q.subscribe("d", start="earliest")
        with pytest.raises(queueduct.Full):
            q.put_once(np.arange(100), "feed", 1)
        return q, reader

    die_after(children, work)
    with RawEvents("q") as raw:
        line = raw.field("producers_offset") + 128
        done = raw.word(line + 8) & ((1 << 30) - 1)
        assert raw.get_control("synced") == done > 50
        raw.set_word(line + 32, done)
        raw.set_word(line + 40, 100 << 32 | 100 - done)
        raw.start_anew()
    with EventQueue.open("q") as q:
        assert (q.end, q.producers()[0].done) == (done, done)
        q.clear()
        q.unsubscribe("d")
        with q.subscribe() as reader:
            assert q.put_once(np.arange(100), "feed", 1) == 100 - done
            assert reader.get_many(200).tolist() == list(range(done, 100))


def test_a_producer_that_was_at_work_when_the_machine_went_down_is_free(children):
    """Its owner word may name a line and a tenure that somebody has again by now."""
    reboot(children, fill(10, 0))
    with EventQueue.open("q") as q:
        q.put_once([1], "feed", 1)
    with RawEvents("q") as raw:
        line = raw.field("producers_offset") + 128
        tenure = int.from_bytes(raw.memory[raw.line_offset(0) + 48 : raw.line_offset(0) + 52], "little")
        raw.set_word(line, (tenure + 1) << 32 | 1)
        raw.set_word(raw.field("producers_offset"), (tenure + 1) << 32 | 1)
        raw.start_anew()
    with EventQueue.open("q") as q:
        q.put(0)  # takes line 0, with that tenure
        assert q.put_once([2], "feed", 2) == q.put_once([2], "another", 2) == 1


ONE_WITNESS = {
    "boot_id": lambda raw: raw.set_control("boot_id", 1234567),
    "the clock was set": lambda raw: raw.set_control("booted_ns", raw.get_control("booted_ns") - 10**15),
    "the clock was set back": lambda raw: raw.set_control("booted_ns", raw.get_control("booted_ns") + 10**15),
    "uptime_ns": lambda raw: raw.set_control("uptime_ns", raw.get_control("uptime_ns") + 10**15),
    "unknown": lambda raw: [raw.set_control(name, 0) for name in ("boot_id", "booted_ns", "uptime_ns")],
}


@pytest.mark.parametrize("witness", ONE_WITNESS)
def test_one_witness_alone_tells_of_no_boot(children, witness):
    die_after(children, fill(100, 50))
    with RawEvents("q") as raw:
        ONE_WITNESS[witness](raw)
    with EventQueue.open("q") as q:
        assert (q.end, q.epoch) == (150, 0)
        assert q.read(0, 150).tolist() == list(range(150))


@pytest.mark.parametrize("pair", [("boot_id", "booted_ns"), ("boot_id", "uptime_ns"), ("booted_ns", "uptime_ns")])
def test_two_witnesses_are_enough(children, pair):
    die_after(children, fill(100, 50))
    with RawEvents("q") as raw:
        before = {name: raw.get_control(name) for name in ("boot_id", "booted_ns", "uptime_ns")}
        raw.start_anew()
        for name in set(before) - set(pair):
            raw.set_control(name, 0 if name == "boot_id" else before[name])
    with EventQueue.open("q") as q:
        assert (q.end, q.epoch) == (100, 1)


def test_the_same_boot_id_is_the_same_boot_whatever_the_clocks_say(children):
    die_after(children, fill(100, 50))
    with RawEvents("q") as raw:
        boot_id = raw.get_control("boot_id")
        raw.start_anew()
        raw.set_control("boot_id", boot_id)
    with EventQueue.open("q") as q:
        assert (q.end, q.epoch) == (150, 0)


@pytest.mark.parametrize("holder", ["handle", "participant", "reader"])
def test_nothing_is_cut_while_somebody_has_the_log_open(holder):
    with EventQueue.create("q", item="<i8", sync="never") as q:
        if holder != "handle":
            q.put_many(np.arange(100))
        reader = q.subscribe("d", start="earliest") if holder == "reader" else None
        start_anew()
        with EventQueue.open("q") as second:
            assert (second.end, second.epoch) == (q.end, 0)
            second.put(1)
        assert reader is None or len(reader.get_many(200)) == 101


def test_nothing_is_cut_while_only_a_forked_child_of_who_had_it_open_lives(children):
    q = EventQueue.create("q", item="<i8", sync="never")
    ready, release = os.pipe(), os.pipe()

    def work():
        os.close(release[1])
        q.put_many(np.arange(100))
        os.write(ready[1], b"x")
        os.read(release[0], 1)

    child = children.fork(work)
    assert os.read(ready[0], 1) == b"x"
    q.close()
    start_anew()
    with EventQueue.open("q") as again:
        assert (again.end, again.epoch) == (100, 0)
    os.close(release[1])
    assert children.wait(child) == 0


@pytest.mark.parametrize("form", ["bytes", "records"])
def test_a_log_that_contradicts_itself_is_cut_where_the_sync_ends(children, form):
    """Where the witnesses are unknown: pages that never reached the disk are zeros."""

    def work():
        q = EventQueue.create("q", item=bytes if form == "bytes" else "<i8", sync="never")
        q.put_many([b"item"] * 20 if form == "bytes" else range(20))
        q.sync()
        q.put_many([b"item"] * 100 if form == "bytes" else range(20, 120))
        return q

    die_after(children, work)
    with RawEvents("q") as raw:
        ONE_WITNESS["unknown"](raw)
        last = raw.get_control("chunks_made") - 1
        if form == "records":
            raw.set_word(raw.chunk_offset(last, "items"), 0)
        else:
            block = raw.word(raw.chunk_offset(last, "block")) & 0xFFFF_FFFF
            raw.set_word(raw.field("arena_offset") + block * raw.field("block_bytes") + 8, 0)
    with EventQueue.open("q") as q:
        assert (q.end, q.epoch) == (20, 1)
        assert len(q.read(0, 20)) == 20
        q.put_many([b"new"] * 50 if form == "bytes" else range(50))


def test_openers_that_come_at_once_after_a_boot_cut_once_and_lose_nothing(children):
    reboot(children, fill(100, 50))
    code = "import queueduct; q = queueduct.open('q'); q.put(7); print(q.epoch)"
    crowd = [children.start(code) for _ in range(4)]
    assert [each.communicate(timeout=90) for each in crowd] == [("1\n", "")] * 4
    with EventQueue.open("q") as q:
        assert (q.end, q.epoch) == (104, 1)
        assert q.read(0, 104).tolist() == [*range(100), *[7] * 4]


def test_an_opener_that_is_killed_while_it_settles_leaves_it_to_the_next(children):
    """At every step between the first look and the last: see also the campaign of kills at every failpoint."""
    die_after(children, fill(100, 50))
    for delay in range(6):
        start_anew()
        child = children.start(
            "import sys, queueduct; sys.stdin.readline(); queueduct.open('q'); print('open', flush=True)"
        )
        child.stdin.write("\n")
        child.stdin.flush()
        if delay % 3:
            child.stdout.readline()
        child.kill()
        child.wait(30)
        with EventQueue.open("q") as q:
            assert q.end == 100 + delay
            assert q.read(0, 100).tolist() == list(range(100))
            q.put(delay)


def test_what_is_offered_elsewhere_ends_at_what_is_on_the_disk(children):
    with EventQueue.create("q", item="<i8", sync="never") as q:
        q.put_many(np.arange(100))
        assert (q.end, q.durable_end(sync=False)) == (100, 0)
        assert q.durable_end() == 100
        q.put_many(np.arange(100))
        with q.subscribe(start="earliest") as reader:
            assert len(reader.get_many(300)) == 200  # readers of this host see everything at once
        del reader  # it would keep the handle
    die_after(children, fill(0, 10))
    with RawEvents("q") as raw:
        offered = raw.get_control("confirmed")
        raw.start_anew()
    with EventQueue.open("q") as q:
        assert q.end == offered == q.valid_until(0) == 200


def test_syncs_on_demand_are_not_made_more_often_than_every_20_ms():
    with EventQueue.create("q", item="<i8", sync="never") as q:
        q.put(1)
        assert q.durable_end() == 1
        q.put(2)
        seen = [q.durable_end() for _ in range(3)]
        assert seen[-1] in (1, 2)
        q.sync()
        assert q.durable_end(sync=False) == 2


def test_a_log_in_memory_offers_its_end_and_is_never_cut(children, queue_dir, monkeypatch):
    monkeypatch.setenv("QUEUEDUCT_DIR", str(queue_dir))
    die_after(children, fill(100, 50))
    start_anew()
    with EventQueue.open("q") as q:
        assert (q.end, q.durable_end(), q.epoch) == (150, 150, 0)
