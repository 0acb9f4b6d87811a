"""Objects that cannot be unpickled where they are got: each is an error at its turn, and no other item is lost."""

from __future__ import annotations

import pytest

import queueduct
from tests.support.kinds import CLASSES
from tests.support.reading import reader_of


def fail(what):
    raise RuntimeError(what)


class Unreadable:
    """Pickles, and cannot be unpickled."""

    def __init__(self, what):
        self.what = what

    def __reduce__(self):
        return fail, (self.what,)


@pytest.mark.parametrize("kind", CLASSES)
class TestWhatCannotBeUnpickled:
    @pytest.fixture
    def q(self, kind):
        with CLASSES[kind].create("q", item=object) as made:
            yield made

    def test_a_batch_ends_before_it_and_the_next_call_raises(self, q):
        reader = reader_of(q)
        q.put_many([1, 2, Unreadable("a"), 3, Unreadable("b"), Unreadable("c"), 4])
        assert reader.get_many(9) == [1, 2]
        with pytest.raises(RuntimeError, match="a"):
            reader.get_many(9)
        assert reader.get_many(9) == [3]
        for what in "bc":
            with pytest.raises(RuntimeError, match=what):
                reader.get_many(9)
        assert reader.get_many(9) == [4]
        assert reader.try_get() is None

    @pytest.mark.parametrize("get", ["get", "get_nowait", "try_get"])
    def test_every_get_raises_at_its_turn(self, q, get):
        reader = reader_of(q)
        q.put_many([1, Unreadable("a"), 2])
        assert reader.get_many(9) == [1]
        with pytest.raises(RuntimeError, match="a"):
            getattr(reader, get)()
        assert getattr(reader, get)() == 2

    def test_a_single_get_raises_and_the_next_one_goes_on(self, q):
        reader = reader_of(q)
        q.put_many([Unreadable("a"), 2])
        with pytest.raises(RuntimeError, match="a"):
            reader.get()
        assert reader.get() == 2

    def test_it_is_raised_after_a_shutdown_too(self, q):
        reader = reader_of(q)
        q.put_many([1, Unreadable("a")])
        q.shutdown()
        assert reader.get_many(9) == [1]
        with pytest.raises(RuntimeError, match="a"):
            reader.get_many(9)
        with pytest.raises(queueduct.ShutDown):
            reader.get_many(9)

    def test_a_limit_before_it_leaves_it_where_it_is(self, q):
        reader = reader_of(q)
        q.put_many([1, 2, Unreadable("a"), 3])
        assert reader.get_many(2) == [1, 2]
        with pytest.raises(RuntimeError, match="a"):
            reader.get()
        assert reader.get() == 3


def test_a_reader_finds_what_cannot_be_unpickled_in_whatever_chunk_it_is():
    with queueduct.EventQueue.create("q", item=object, first_items=4) as q:
        reader = q.subscribe()
        q.put_many([Unreadable(str(i)) if i % 7 == 6 else i for i in range(50)])
        found = []
        while reader.lag:
            try:
                found += reader.get_many(99)
            except RuntimeError as error:
                found.append(int(str(error)))
        assert found == list(range(50))
