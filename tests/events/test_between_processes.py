"""Many writers and many readers of one log, in processes of their own.

Allowed: every reader sees every item from its place on, each once, and all readers see them in one and the same order,
which keeps the order of each writer.
Nothing is random here; the schedule is the machine's.
"""

from __future__ import annotations

import numpy as np
import pytest

from queueduct import EventQueue, ShutDown
from tests.support import traffic
from tests.support.deadline import until

WRITERS, READERS = 4, 8
MAX_BYTES = 1 << 20  # far less than what goes through: writers wait for readers, chunks are used again
ITEMS, LONG_ITEMS = 1_000_000, 10_000_000


def ranges(reader):
    """Records as arrays, until the shutdown."""
    while True:
        try:
            yield reader.get_many(20_000)
        except ShutDown:
            return


def views(reader):
    """The same without a copy by the queue: a view gives nothing instead of waiting, so wait with a get."""
    try:
        while True:
            yield np.array([reader.get()])
            with reader.view() as array:
                yield np.array(array)
    except ShutDown:
        return


FORMS = {
    "records, in batches": (traffic.Form({"item": "<u8"}, traffic.put_ranges, ranges), ITEMS),
    "records, in views": (traffic.Form({"item": "<u8"}, traffic.put_ranges, views), ITEMS),
    "records, one at a time": (traffic.FORMS["records, one at a time"], 20_000),
    "bytes, one at a time": (traffic.FORMS["bytes, one at a time"], 40_000),
    "bytes, in batches": (traffic.FORMS["bytes, in batches"], 40_000),
    "objects, one at a time": (traffic.FORMS["objects, one at a time"], 10_000),
}


class Stage:
    """One queue, the processes that read it, and what each of them has seen."""

    def __init__(self, children, folder, form, **create):
        self.children, self.folder, self.form = children, folder, form
        self.q = EventQueue.create("q", max_bytes=MAX_BYTES, **form.create, **create)
        self.pids = {}

    def start_reader(self, key, start="earliest", name=None):
        """Subscribes in a process of its own; has done so when this returns."""
        number = len(self.q.readers())

        def work():
            reader = self.q.subscribe(name, start)
            first = reader.position
            witness = traffic.Witness(WRITERS, from_first=first == 0)
            for numbers in self.form.get(reader):
                witness.see(numbers)
                if name is not None:
                    reader.commit()
            assert first + witness.count == self.q.end
            np.save(self.folder / f"seen {key}.npy", [first, witness.count, witness.order])

        self.pids[key] = self.children.fork(work)
        until(lambda: len(self.q.readers()) > number, f"the reader {key}")

    def start_writers(self, count):
        def work(writer):
            self.form.put(self.q, writer, count)

        return [self.children.fork(lambda n=n: work(n)) for n in range(WRITERS)]

    def finish(self, writers):
        """All have ended well; what each reader saw: its first position, how many, and the checksum of their order."""
        assert [self.children.wait(pid) for pid in writers] == [0] * len(writers)
        self.q.shutdown()
        assert {key: self.children.wait(pid) for key, pid in self.pids.items()} == dict.fromkeys(self.pids, 0)
        return {key: tuple(map(int, np.load(self.folder / f"seen {key}.npy"))) for key in self.pids}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", list(FORMS))
def test_every_reader_sees_everything_in_one_order_that_keeps_each_writers(children, queue_dir, is_long, name):
    form, items = FORMS[name]
    if is_long:
        items = LONG_ITEMS if name == "records, in batches" else 10 * items
    stage = Stage(children, queue_dir, form)
    for n in range(READERS):
        stage.start_reader(n)
    seen = stage.finish(stage.start_writers(items // WRITERS))
    assert {(first, count) for first, count, _ in seen.values()} == {(0, items)}
    assert len({order for _, _, order in seen.values()}) == 1
    stats = stage.q.stats()
    assert (stats.end, stats.readers, stats.repairs, stats.readers_dropped) == (items, 0, 0, 0)
    assert stats.used_bytes <= MAX_BYTES


def test_readers_that_come_late_begin_where_they_asked(children, queue_dir):
    """Among writers at work. A durable reader that commits nothing keeps everything, so the earliest is the first."""
    form, items = FORMS["records, in batches"][0], 100_000
    stage = Stage(children, queue_dir, form)
    stage.q.subscribe("keeps all", "earliest").close()
    writers = stage.start_writers(items // WRITERS)
    for n in range(4):
        until(lambda n=n: stage.q.end > n * items // 8, "some items")
        for start in ("earliest", "latest", stage.q.end // 2):
            stage.start_reader((n, start), start)
    seen = stage.finish(writers)
    whole_order = {seen[n, "earliest"] for n in range(4)}
    assert len(whole_order) == 1
    for (n, start), (first, count, _) in seen.items():
        assert first + count == items
        if start == "latest":
            assert first > n * items // 8
        else:
            assert first == (0 if start == "earliest" else start)
    assert stage.q.earliest == 0


def test_a_late_reader_gets_what_is_still_kept_while_others_free_it(children, queue_dir):
    """No durable reader: the earliest moves all the time, and nobody gets something that was freed under it."""
    form, items = FORMS["records, in batches"][0], ITEMS
    stage = Stage(children, queue_dir, form, first_items=16)
    stage.start_reader("first")
    writers = stage.start_writers(items // WRITERS)
    for n in range(8):
        stage.start_reader(n)
    seen = stage.finish(writers)
    assert seen.pop("first")[:2] == (0, items)
    assert all(first + count == items for first, count, _ in seen.values())


@pytest.mark.parametrize("name", ["records, in batches", "bytes, in batches"])
def test_durable_readers_that_restart_see_all_that_they_had_not_committed(children, queue_dir, name):
    """Each life of a reader commits what it keeps, gets something more that it does not, and exits at once."""
    form, items, lives = traffic.FORMS[name], 40_000, 5
    stage = Stage(children, queue_dir, form)

    def live(name, life):
        reader = stage.q.subscribe(name)
        committed = []
        for numbers in form.get(reader):
            got = np.fromiter(numbers, "<u8")
            if life < lives - 1 and sum(map(len, committed)) > items / lives:
                break
            committed.append(got)
            reader.commit()
        np.save(queue_dir / f"{name} {life}.npy", np.concatenate(committed))

    names = [f"reader {n}" for n in range(3)]
    for each in names:
        stage.q.subscribe(each, "earliest").close()
    writers = stage.start_writers(items // WRITERS)
    for life in range(lives):
        if life == lives - 1:
            stage.finish(writers)
        pids = [children.fork(lambda each=each, life=life: live(each, life)) for each in names]
        assert [children.wait(pid) for pid in pids] == [0] * len(names)
    for each in names:
        witness = traffic.Witness(WRITERS)
        for life in range(lives):
            witness.see(np.load(queue_dir / f"{each} {life}.npy"))
        assert witness.count == items
    assert [info.lag for info in stage.q.readers()] == [0] * len(names)
