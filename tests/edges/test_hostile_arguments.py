"""Arguments whose own code raises, or uses the queue: whatever a call makes of them, the queue goes on at once.

Nothing of Python may run while a lock of a queue is held: an exception would leave it locked for everybody.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import queueduct
from tests.edges.kinds import KINDS, item, number_of
from tests.support.children import fork


class Refused(Exception):
    """What a hostile argument raises."""


ALLOWED = (Refused, TypeError, ValueError, AttributeError, queueduct.QueueductError, queueduct.Empty, queueduct.Full)


class Hostile:
    """Every conversion that a call could ask for runs ``then``, and raises."""

    def __init__(self, then: Callable[[], object]) -> None:
        self.then = then

    def refuse(self, *_: object, **__: object) -> Any:
        self.then()
        raise Refused

    __index__ = __int__ = __float__ = __len__ = __iter__ = __array__ = __buffer__ = __bytes__ = refuse
    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __getitem__ = __add__ = refuse
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return "Hostile"

    def __reduce__(self) -> Any:
        return self.refuse()


class HostileText(str):
    """A name whose methods raise."""

    then: Callable[[], object]

    def refuse(self, *_: object, **__: object) -> Any:
        self.then()
        raise Refused

    encode = __eq__ = __len__ = __iter__ = __contains__ = __getitem__ = refuse
    __hash__ = str.__hash__


CALLS: dict[str, Callable[[Any, Any], object]] = {
    "put": lambda q, x: q.put(x, timeout=1),
    "put_timeout": lambda q, x: q.put(item(0), timeout=x),
    "put_block": lambda q, x: q.put(item(0), block=x),
    "put_many": lambda q, x: q.put_many(x, timeout=1),
    "put_many_of_them": lambda q, x: q.put_many([item(0), x], timeout=1),
    "put_once_items": lambda q, x: q.put_once(x, "p", 1, timeout=1),
    "put_once_of_them": lambda q, x: q.put_once([item(0), x], "p", 1, timeout=1),
    "put_once_producer": lambda q, x: q.put_once([item(0)], x, 1, timeout=1),
    "put_once_sequence": lambda q, x: q.put_once([item(0)], "p", x, timeout=1),
    "forget_producer": lambda q, x: q.forget_producer(x),
    "get_many": lambda q, x: q.get_many(x, timeout=0),
    "get_timeout": lambda q, x: q.get(timeout=x),
    "subscribe": lambda q, x: q.subscribe(x),
    "subscribe_start": lambda q, x: q.subscribe(start=x),
    "subscribe_both": lambda q, x: q.subscribe("name", start=x),
    "subscribe_epoch": lambda q, x: q.subscribe(start=0, epoch=x),
    "unsubscribe": lambda q, x: q.unsubscribe(x),
    "read_start": lambda q, x: q.read(x, 1),
    "read_stop": lambda q, x: q.read(0, x),
    "keep_last": lambda q, x: q.keep_last(x),
    "valid_until": lambda q, x: q.valid_until(x),
    "commit": lambda q, x: committing(q, lambda r: r.commit(x)),
    "commit_epoch": lambda q, x: committing(q, lambda r: r.commit(0, epoch=x)),
    "reader_get_many": lambda q, x: committing(q, lambda r: r.get_many(x)),
    "reader_timeout": lambda q, x: committing(q, lambda r: r.get(timeout=x)),
    "view": lambda q, x: committing(q, lambda r: r.view(x)),
    "lease": lambda q, x: q.lease(x, timeout=0),
    "unreleased": lambda q, x: q.unreleased(x),
    "unreleased_of_them": lambda q, x: q.unreleased([x]),
    "set_capacity": lambda q, x: q.set_capacity(x),
    "put_overwrite": lambda q, x: q.put(item(0), overwrite=x),
    "loan": lambda q, x: q.loan(x),
    "shutdown": lambda q, x: q.shutdown(immediate=x),
    "subscribe_array": lambda q, _: q.subscribe(start=np.array([5])),
    "lease_block": lambda q, x: q.lease(1, x, 0),
    "lease_timeout": lambda q, x: q.lease(1, timeout=x),
    "alease": lambda q, x: waiting(q.alease(x, timeout=0)),
    "alease_timeout": lambda q, x: waiting(q.alease(1, timeout=x)),
    "aget": lambda q, x: waiting(q.aget(timeout=x)),
    "aget_many": lambda q, x: waiting(q.aget_many(x, timeout=0)),
    "aput": lambda q, x: waiting(q.aput(x, timeout=1)),
    "aput_timeout": lambda q, x: waiting(q.aput(item(0), timeout=x)),
    "aput_many": lambda q, x: waiting(q.aput_many([item(0), x], timeout=1)),
    "join": lambda q, x: q.join(x),
    "task_done": lambda q, x: q.task_done(x),
    "latest": lambda q, x: q.latest(x, timeout=0),
    "latest_block": lambda q, x: q.latest(None, x, 0),
    "alatest": lambda q, x: waiting(q.alatest(x, timeout=0)),
    "peek": lambda q, x: q.peek(x),
    "take": lambda q, x: q.take(x),
    "atake": lambda q, x: waiting(q.atake(x)),
    "aloan": lambda q, x: waiting(q.aloan(0, length=x)),
    "aview": lambda q, x: committing(q, lambda r: waiting(r.aview(x, timeout=0))),
    "participants": lambda q, x: q.participants(x),
    "open_timeout": lambda q, x: queueduct.open("missing", timeout=x),
    "watch": lambda q, x: queueduct.watch(x),
}


def waiting(call: Any) -> object:
    async def wait() -> object:
        return await call

    return asyncio.run(wait())


def committing(q: Any, call: Callable[[Any], object]) -> object:
    with q.subscribe("hostile", start="earliest") as reader:
        return call(reader)


def hostile_to(q: Any) -> list[Any]:
    """Arguments that only raise, and ones that use the queue first."""

    def use() -> None:
        q.try_put(item(7))
        q.qsize()
        repr(q)

    found: list[Any] = []
    for then in (lambda: None, use):
        text = HostileText("hostile")
        text.then = then
        found += [Hostile(then), text]
    return found


OTHER = "import sys, queueduct; queueduct.open('q').put(sys.argv[1].encode(), timeout=1)"


@pytest.mark.parametrize("kind", KINDS)
def test_a_queue_goes_on_after_every_call_with_hostile_arguments(children, kind):
    with KINDS[kind].create("q") as q:
        for name, call in CALLS.items():
            for argument in hostile_to(q):
                try:
                    call(q, argument)
                except Exception as error:
                    assert isinstance(error, ALLOWED), (name, error)
            assert not q.stats().is_shut_down, name
            q.put(item(2), timeout=1)
            drain(kind, q)
        children.run(OTHER, item(1).decode())
        assert number_of(KINDS[kind].consumer(q).get_many(500)[-1]) == 1


def drain(kind: str, q: Any) -> None:
    """Make room; a log is cleared."""
    if kind == "events":
        q.clear()
        return
    while q.try_get() is not None:
        pass


@pytest.mark.parametrize("argument", ["position", "epoch"])
def test_a_commit_whose_argument_forks_commits_in_the_parent_alone(children, argument):
    """Both processes return from the conversion: the reader is the parent's."""
    forked: list[int] = []

    class Forks:
        def __index__(self) -> int:
            forked.append(os.fork())
            return 0 if argument == "epoch" else 40 if forked == [0] else 1

    with KINDS["events"].create("q") as q:
        q.put_many([item(number) for number in range(50)])
        with q.subscribe("d", start="earliest") as reader:
            try:
                if argument == "position":
                    reader.commit(Forks())
                else:
                    reader.commit(1, epoch=Forks())
            except queueduct.QueueClosed:
                os._exit(0 if forked == [0] else 2)
            if forked == [0]:
                os._exit(1)
            children.forks.update(forked)
            assert [children.wait(pid) for pid in forked] == [0]
            assert reader.committed == 1


def test_a_commit_whose_argument_ends_its_reader_moves_nobody_elses_place():
    with KINDS["events"].create("q", readers=1) as q:
        q.put_many([item(number) for number in range(50)])
        reader = q.subscribe("d", start="earliest")

        class Ends:
            def __index__(self) -> int:
                reader.close()
                q.unsubscribe("d")
                self.other = q.subscribe("other", start="earliest")  # has the same line
                return 40

        position = Ends()
        with pytest.raises(queueduct.QueueClosed):
            reader.commit(position)
        assert position.other.committed == 0


LYING = """
import contextlib, sys, warnings
import numpy as np
import queueduct
from tests.edges.kinds import KINDS, item

warnings.simplefilter("ignore")  # Python's own, of what __index__ may return

class Liar(int):
    __lt__ = __gt__ = lambda self, other: False
    __le__ = __ge__ = lambda self, other: True

class Index:
    def __init__(self, value):
        self.value = value
    def __index__(self):
        return Liar(self.value)

def committing(call):
    with q.subscribe("hostile", start="earliest") as reader:
        call(reader)

def looking():
    with queueduct.EventQueue.create("records", item=np.dtype("i8")) as records, records.subscribe() as reader:
        with reader.view(Index(0)):
            pass

few, many = Index(0), Index(1 << 40)
CALLS = {
    "get_many": lambda: q.get_many(few, block=False),
    "lease": lambda: q.lease(few, block=False),
    "release": lambda: q.lease(2).release(many),
    "put_once": lambda: q.put_once([item(0)], "p", Index(-1), timeout=1),
    "set_capacity": lambda: q.set_capacity(many),
    "publish": lambda: q.loan().publish(many),
    "loan": lambda: q.loan(length=many),
    "keep_last": lambda: q.keep_last(Index(-1)),
    "read": lambda: q.read(0, many),
    "start": lambda: q.subscribe(start=many),
    "epoch": lambda: q.valid_until(many),
    "commit": lambda: committing(lambda reader: reader.commit(many)),
    "reader_get_many": lambda: committing(lambda reader: reader.get_many(few, block=False)),
    "view": looking,
    "create": lambda: queueduct.SlotQueue.create("other", few),
    "index": lambda: queueduct.IndexQueue(4).push(many),
    "index_of_a_liar": lambda: queueduct.IndexQueue(4).push(Liar(1 << 40)),
    "index_create": lambda: queueduct.IndexQueue(many),
}
kind = KINDS[sys.argv[1]]
with kind.create("q") as q:
    q.put_many([item(i) for i in range(4)])
    for name, call in CALLS.items():
        try:
            call()
            print(name, "was believed")
        except (ValueError, AttributeError, TypeError):  # it is no number of items, or no call of this kind
            pass
    consumer, left = kind.consumer(q), 0
    while consumer.try_get() is not None:
        left += 1
    print(left)
"""


@pytest.mark.parametrize("kind", KINDS)
def test_an_index_that_compares_as_it_likes_is_the_number_that_it_is(children, kind):
    """It passed every check, and was then used as a length."""
    assert children.run(LYING, kind) == "4\n"


@pytest.mark.parametrize("kind", [kind for kind in KINDS if KINDS[kind].has_leases])
@pytest.mark.parametrize(
    "count", [np.array([3]), Hostile(lambda: None), 1.5, "3"], ids=["array", "hostile", "float", "str"]
)
def test_a_release_of_what_is_no_count_ends_no_lease(kind, count):
    with KINDS[kind].create("q") as q:
        q.put_many([item(i) for i in range(4)])
        with q.lease(4) as lease:
            with pytest.raises((TypeError, Refused)):
                lease.release(count)
            assert lease.is_held
        assert q.try_get() is None


class Acting:
    """An index that does something first."""

    def __init__(self, value: int, then: Callable[[], object]) -> None:
        self.value = value
        self.then = then

    def __index__(self) -> int:
        self.then()
        return self.value


@pytest.mark.parametrize("argument", ["position", "epoch"])
def test_a_commit_whose_argument_closes_the_reader_moves_nobody(argument):
    with KINDS["events"].create("q") as q:
        q.put_many([item(i) for i in range(4)])
        reader = q.subscribe("name", start="earliest")
        others = []

        def hand_over():
            reader.close()
            others.append(q.subscribe("name"))

        position = Acting(3, hand_over) if argument == "position" else 3
        epoch = Acting(0, hand_over) if argument == "epoch" else None
        with pytest.raises(queueduct.QueueClosed):
            reader.commit(position, epoch=epoch)
        assert others[0].committed == 0


def test_a_publish_whose_argument_forks_is_the_parents(children):
    with KINDS["slots"].create("q") as q:
        slot = q.loan()
        slot.array[:3] = list(b"abc")
        pids = []
        try:
            slot.publish(Acting(3, lambda: pids.append(fork())))
        except ValueError:
            os._exit(7 if pids == [0] else 1)
        if pids == [0]:
            os._exit(0)
        children.forks.add(pids[0])
        assert children.wait(pids[0]) == 7
        assert q.get(timeout=5) == b"abc"
        with contextlib.suppress(queueduct.Empty):
            raise AssertionError(q.get(timeout=0.2))


WAITS: dict[str, Callable[[Any, Any], object]] = {
    "put": lambda q, x: q.put(item(0), timeout=x),
    "put_many": lambda q, x: q.put_many([item(0)], timeout=x),
    "put_once": lambda q, x: q.put_once([item(0)], "p", 1, timeout=x),
    "aput": lambda q, x: waiting(q.aput(item(0), timeout=x)),
    "aput_many": lambda q, x: waiting(q.aput_many([item(0)], timeout=x)),
    "get": lambda q, x: consumer_of(q).get(timeout=x),
    "get_many": lambda q, x: consumer_of(q).get_many(1, timeout=x),
    "aget": lambda q, x: waiting(consumer_of(q).aget(timeout=x)),
    "aget_many": lambda q, x: waiting(consumer_of(q).aget_many(1, timeout=x)),
    "lease": lambda q, x: q.lease(1, timeout=x),
    "alease": lambda q, x: waiting(q.alease(1, timeout=x)),
    "take": lambda q, x: q.take(x),
    "atake": lambda q, x: waiting(q.atake(x)),
    "loan": lambda q, x: q.loan(x),
    "aloan": lambda q, x: waiting(q.aloan(x)),
    "latest": lambda q, x: q.latest(timeout=x),
    "alatest": lambda q, x: waiting(q.alatest(timeout=x)),
    "view": lambda q, x: consumer_of(q).view(timeout=x),
}
NOT_OF_KIND = {
    "overwriting": {"put_once", "take", "atake", "loan", "aloan", "view"},
    "slots": {"latest", "alatest", "view"},
    "events": {"lease", "alease", "take", "atake", "loan", "aloan", "latest", "alatest"},
}
OTHERS = {"take", "atake", "loan", "aloan", "latest", "alatest", "view"}


def consumer_of(q: Any) -> Any:
    return q.subscribe(start="earliest") if q.kind == "events" else q


def waits_of(kind: str) -> list[str]:
    return [name for name in WAITS if name not in NOT_OF_KIND.get(kind, OTHERS)]


def make_with_records(kind: str) -> Any:
    """A log whose readers have views, or another queue."""
    return KINDS[kind].create("q", **({"item": np.dtype("S64")} if kind == "events" else {}))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "timeout", ["1", b"1", 1j, [], object(), np.array([1, 2]), -1, -1.5, float("nan"), -(10**400)], ids=repr
)
def test_a_wrong_timeout_is_named_by_every_call_that_waits(kind, timeout):
    """What Python says by itself, "must be real number, not str", does not say of what."""
    with make_with_records(kind) as q:
        q.put(item(1))
        for name in waits_of(kind):
            with pytest.raises(
                (TypeError, ValueError), match="timeout must be a non-negative number or None: timeout="
            ):
                WAITS[name](q, timeout)
        assert q.qsize() == 1
        assert number_of(KINDS[kind].consumer(q).get(timeout=1)) == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("timeout", [10**400, float("inf"), 1e308, np.float32(5), np.int64(5), True], ids=repr)
def test_any_other_number_of_seconds_is_a_timeout(kind, timeout):
    with make_with_records(kind) as q:
        for name in waits_of(kind):
            q.put(item(1))
            got = WAITS[name](q, timeout)
            for end in ("release", "cancel"):
                if hasattr(got, end):
                    getattr(got, end)()
            drain(kind, q)


@pytest.mark.parametrize("name", ["\ud800", "a\udfffb"])
def test_a_name_that_is_no_text_says_what_is_wrong_with_it(name):
    with KINDS["events"].create("q") as q:
        for call in (
            lambda: queueduct.open(name),
            lambda: q.put_once([item(0)], name, 1),
            lambda: q.subscribe(name),
            lambda: q.unsubscribe(name),
            lambda: q.forget_producer(name),
        ):
            with pytest.raises(ValueError, match=r"s name must be text without lone surrogates: .*ud"):
                call()
