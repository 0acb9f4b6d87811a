"""view(): records where they lie. Nothing is copied, nothing can be written, and nothing crashes afterwards."""

from __future__ import annotations

import copy
import gc
import pickle

import numpy as np
import pytest

import queueduct
from queueduct import EventQueue
from tests.support.ticks import TICK, fill, numbers


@pytest.fixture
def q():
    with EventQueue.create("q", item=TICK) as made:
        made.subscribe("first", start="earliest").close()
        made.put_many([(i, i / 2) for i in range(100)])
        yield made


@pytest.fixture
def reader(q):
    return q.subscribe(start="earliest")


def address(array):
    return array.__array_interface__["data"][0]


def test_a_view_shows_the_next_records_and_takes_them(reader):
    with reader.view() as array:
        assert isinstance(array, np.ndarray)
        assert array.dtype == TICK
        assert array["id"].tolist() == [0, 1, 2, 3]
        assert array["px"].tolist() == [0, 0.5, 1, 1.5]
        assert array[2]["id"] == 2
        assert reader.committed == 0
    assert reader.position == 4
    with reader.view() as array:
        assert array["id"].tolist() == [4, 5, 6, 7]


def test_views_of_chunk_after_chunk_show_everything(reader):
    seen, sizes = [], []
    while reader.lag:
        with reader.view() as array:
            sizes.append(len(array))
            seen += array["id"].tolist()
    assert seen == list(range(100))
    assert sizes == [4, 4, 8, 8, 16, 16, 32, 12]


def test_nothing_is_copied(q, reader):
    """Two readers' views lie at the same address, in the queue's own mapping."""
    other = q.subscribe(start="earliest")
    with reader.view() as one, other.view() as two:
        assert address(one) == address(two)
        assert np.shares_memory(one, two)
        assert address(one["px"]) == address(one) + TICK.fields["px"][1]
        assert np.shares_memory(one[1:3], two)
        assert not one.flags.owndata


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 1000])
def test_max_items_limits_a_view(reader, limit):
    seen = []
    while reader.lag:
        with reader.view(max_items=limit) as array:
            assert 1 <= len(array) <= limit
            seen += array["id"].tolist()
    assert seen == list(range(100))


def test_a_view_of_nothing_is_empty(q):
    reader = q.subscribe()
    with reader.view() as array:
        assert len(array) == 0
        assert array.dtype == TICK
    assert reader.position == 100


def test_a_view_after_a_shutdown_raises_when_all_is_seen(q):
    reader = q.subscribe(start=99)
    q.shutdown()
    with reader.view() as array:
        assert len(array) == 1
    with pytest.raises(queueduct.ShutDown):
        reader.view().__enter__()


WRITES = {
    "item": lambda a: a.__setitem__(0, (1, 1.0)),
    "field": lambda a: a["px"].__setitem__(0, 1.0),
    "slice": lambda a: a[1:3].__setitem__(slice(None), (1, 1.0)),
    "record": lambda a: a[0].__setitem__("px", 5.0),
    "out": lambda a: np.add(a["px"], 1, out=a["px"]),
    "in place": lambda a: a["px"].__iadd__(1),
    "fill": lambda a: a["px"].fill(5),
    "sort": lambda a: a["id"][::-1].sort(),
    "copyto": lambda a: np.copyto(a["px"], 5.0),
    "flags": lambda a: setattr(a.flags, "writeable", True),
    "setflags": lambda a: a.setflags(write=True),
    "plain": lambda a: np.asarray(a).__setitem__(0, (1, 1.0)),
    "plain flags": lambda a: setattr(np.asarray(a).flags, "writeable", True),
    "base flags": lambda a: setattr(a.base.flags, "writeable", True),
}


@pytest.mark.parametrize("how", list(WRITES))
def test_nothing_can_be_written_through_a_view(q, reader, how):
    before = q.read(0, 100).tobytes()
    with reader.view() as array, pytest.raises((ValueError, TypeError)):
        WRITES[how](array)
    assert q.read(0, 100).tobytes() == before


USES = {
    "item": lambda a: a[0],
    "field": lambda a: a["px"],
    "slice": lambda a: a[1:],
    "iteration": lambda a: list(a),
    "comparison": lambda a: a == a,
    "tolist": lambda a: a.tolist(),
    "tobytes": lambda a: a.tobytes(),
    "copy": lambda a: a.copy(),
    "view": lambda a: a.view("u1"),
    "astype": lambda a: a.astype("O"),
    "data": lambda a: a.data,
    "base": lambda a: a.base,
    "copy.copy": lambda a: copy.copy(a),
    "copy.deepcopy": lambda a: copy.deepcopy([a]),
    "pickle": lambda a: pickle.dumps(a),
    "concatenate": lambda a: np.concatenate([a, a]),
    "sort": lambda a: np.sort(a),
    "array_equal": lambda a: np.array_equal(a, a),
}
PART_USES = {
    "sum": lambda a: a.sum(),
    "addition": lambda a: a + 1,
    "ufunc": lambda a: np.sqrt(a),
    "reduce": lambda a: np.add.reduce(a),
    "max": lambda a: a.max(),
    "mean": lambda a: np.mean(a),
    "item": lambda a: a[0],
    "slice": lambda a: a[::2],
    "out": lambda a: np.add([1.0] * 4, 1, out=a),
}


@pytest.mark.parametrize("how", list(USES))
def test_a_view_used_after_its_with_is_a_clear_error(reader, how):
    with reader.view() as array:
        USES[how](array)
    with pytest.raises(ValueError, match=r"this view is no longer valid.*copy it there"):
        USES[how](array)


@pytest.mark.parametrize("how", list(PART_USES))
def test_a_part_of_a_view_used_after_its_with_is_a_clear_error(reader, how):
    with reader.view() as array:
        part = array["px"]
        if how != "out":
            PART_USES[how](part)
    with pytest.raises(ValueError, match="this view is no longer valid"):
        PART_USES[how](part)


def test_a_view_that_is_over_can_still_be_looked_at(reader):
    with reader.view() as array:
        part = array[1:]
    for each in (array, part):
        assert repr(each) == str(each) == "<queueduct view, no longer valid>"
    assert (len(array), array.dtype, array.shape) == (4, TICK, (4,))


def test_a_copy_outlives_its_view(q, reader):
    with reader.view() as array:
        copies = [array.copy(), np.array(array), pickle.loads(pickle.dumps(array)), copy.copy(array)]
        copies.append(copy.deepcopy(array))
        doubled = array["px"] * 2
    q.clear()
    for each in copies:
        assert each["id"].tolist() == [0, 1, 2, 3]
    assert doubled.tolist() == [0, 1, 2, 3]


def test_numpy_works_on_a_view_as_on_any_array(reader):
    reader.get_many(24)
    with reader.view() as array:
        assert len(array) == 16
        assert array["px"].sum() == sum(i / 2 for i in range(24, 40))
        assert np.mean(array["id"]) == 31.5
        assert (array["id"] > 30).sum() == 9
        assert array[array["id"] > 37]["id"].tolist() == [38, 39]
        assert np.concatenate([array["id"], array["id"]]).shape == (32,)
        assert array["id"].reshape(4, 4)[1, 1] == 29
        assert type(array["px"] + 1) is np.ndarray
        assert float(np.max(array["px"])) == 19.5


class Stop(Exception):
    """Something that goes wrong inside."""


def test_an_exception_inside_leaves_the_place(reader):
    with pytest.raises(Stop), reader.view() as array:
        raise Stop
    assert reader.position == 0
    with pytest.raises(ValueError, match="no longer valid"):
        array[0]
    with reader.view() as array:
        assert array["id"][0] == 0
    assert reader.position == 4


def test_a_view_is_entered_once(reader):
    view = reader.view()
    with view:
        pass
    with pytest.raises(RuntimeError, match="entered once"):
        view.__enter__()
    assert reader.position == 4


def test_a_view_needs_records():
    for queue in (EventQueue.create("b"), EventQueue.create("o", item=object), EventQueue()):
        with pytest.raises(TypeError, match="queue of records"):
            queue.subscribe().view()


def test_a_view_of_arrays_and_of_numbers():
    with EventQueue.create("a", item=np.dtype(("<i4", (2, 2)))) as queue:
        reader = queue.subscribe()
        queue.put_many(np.arange(16, dtype="<i4").reshape(4, 2, 2))
        with reader.view() as array:
            assert array.shape == (4, 2, 2)
            assert array.sum() == 120
        assert reader.position == 4
    with EventQueue.create("n", item="<f8", first_items=1000) as queue:
        reader = queue.subscribe()
        queue.put_many(np.arange(1000.0))
        with reader.view() as array:
            assert array.sum() == 499_500


def test_a_view_holds_its_chunk_however_full_the_log_gets():
    with EventQueue.create("n", item="<u8", max_bytes=4096) as queue:
        reader = queue.subscribe()
        queue.put_many(numbers(100))
        with reader.view() as array:
            fill(queue, 1000)
            assert array.tolist() == [0, 1, 2, 3]
            assert not queue.try_put(1)


def test_a_view_whose_reader_is_dropped_meanwhile_is_data_lost():
    with EventQueue.create("n", item="<u8", max_bytes=4096, on_full="drop_slowest") as queue:
        reader = queue.subscribe()
        queue.put_many(numbers(100))
        view = reader.view()
        view.__enter__()
        queue.put_many(numbers(5000))
        with pytest.raises(queueduct.DataLost) as caught:
            view.__exit__(None, None, None)
        assert (caught.value.wanted, caught.value.earliest) == (0, queue.earliest)
        assert reader.position == queue.earliest


def test_an_exception_inside_is_not_hidden_by_a_drop():
    with EventQueue.create("n", item="<u8", max_bytes=4096, on_full="drop_slowest") as queue:
        reader = queue.subscribe()
        queue.put_many(numbers(100))

        def look():
            with reader.view():
                queue.put_many(numbers(5000))
                raise Stop

        with pytest.raises(Stop):
            look()
        with pytest.raises(queueduct.DataLost):
            reader.get()


def test_what_escapes_as_a_plain_array_never_crashes():
    """It shows whatever lies there by then: the mapping lives as long as anything that looks into it."""
    queue = EventQueue.create("n", item="<u8", max_bytes=1 << 16)
    reader = queue.subscribe()
    queue.put_many(numbers(1000))
    escaped = []
    for _ in range(5):
        with reader.view() as array:
            escaped += [np.asarray(array), memoryview(array), np.ndarray.view(array, np.ndarray)[1:]]
    queue.clear()
    fill(queue)
    reader.close()
    queue.unlink()
    queue.close()
    del queue, reader, array
    gc.collect()
    for each in escaped:
        assert 0 <= int(np.asarray(each).sum()) < 2**62
        with pytest.raises((ValueError, TypeError)):
            each[0] = 5


def test_a_reader_closed_inside_its_own_view_ends_it_cleanly(q, reader):
    with pytest.raises(queueduct.QueueClosed), reader.view():
        reader.close()
    other = q.subscribe()
    assert other.try_get() is None
