"""shutdown() of an event queue, beyond what every kind promises: readers that come later, and iterations under way."""

from __future__ import annotations

import pytest

from queueduct import EventQueue, ShutDown
from tests.support.ticks import FORMS


@pytest.fixture(params=list(FORMS))
def form(request):
    return FORMS[request.param]


def test_a_reader_that_comes_after_the_shutdown_gets_what_is_kept(form):
    make, item, number = form
    with make() as q:
        q.put_many([item(i) for i in range(5)])
        q.shutdown()
        assert [number(each) for each in q.subscribe(start="earliest")] == [0, 1, 2, 3, 4]
        with pytest.raises(ShutDown):
            q.subscribe().get()


def test_an_iteration_keeps_what_it_holds_at_an_immediate_shutdown(form):
    make, item, number = form
    with make() as q:
        reader = q.subscribe()
        q.put_many([item(i) for i in range(10)])
        assert number(next(reader)) == 0
        q.shutdown(immediate=True)
        assert [number(each) for each in reader] == list(range(1, 10))


def test_is_shut_down_says_so_in_every_handle():
    with EventQueue.create("q") as q, EventQueue.open("q") as other:
        assert not q.is_shut_down
        other.shutdown()
        assert q.is_shut_down
        assert other.is_shut_down
