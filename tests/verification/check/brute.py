"""Is a small history linearizable? Asked of the sequential queue itself, by trying every order. Nothing clever in here.

An operation may take its turn when no other that is left has returned before it was invoked. Killed ones may never take
it. The state of the queue after any set of turns is remembered, so that no state is tried twice.

Without tickets two things are known beforehand. A killed put that put nothing leaves no trace. A killed get that names
an item has seen it in the queue: if no other get returned it, nothing but such a get takes it away.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

NEVER = 10**9
TOMBSTONE = None


class Op(NamedTuple):
    op: str
    outcome: str
    value: int | None
    ticket: int | None
    invoke: int
    ret: int
    """NEVER if it was killed."""
    reader: int | None = None
    is_weak: bool = False


class Queue(NamedTuple):
    """What is in it, from position ``head`` on. For a log: everything, and where each reader is."""

    head: int
    items: tuple[int | None, ...]
    places: tuple[int, ...] = ()

    @property
    def tail(self) -> int:
        return self.head + len(self.items)


def is_linearizable(history: list[Op], kind: str, capacity: int | None, has_tickets: bool = True) -> bool:
    readers = sorted({op.reader for op in history if op.reader is not None})
    starts = tuple(
        min((op.ticket for op in history if op.reader == reader and op.ticket is not None), default=0)
        for reader in readers
    )
    search = Search(history, kind, capacity, readers, has_tickets)
    return search.goes_on(0, Queue(0, (), starts))


class Search:
    def __init__(
        self, history: list[Op], kind: str, capacity: int | None, readers: list[int], has_tickets: bool
    ) -> None:
        self.history, self.kind, self.capacity = history, kind, capacity
        self.readers, self.has_tickets = readers, has_tickets
        gets = [op for op in history if op.op == "get" and op.value is not None]
        named = {(op.reader, op.value) for op in gets if op.outcome == "pending"}
        self.only_named = set() if has_tickets else named - {(op.reader, op.value) for op in gets if op.outcome == "ok"}
        self.done = sum(1 << n for n, op in enumerate(history) if op.outcome != "pending")
        self.seen: set[tuple[int, Queue]] = set()

    def goes_on(self, turns: int, queue: Queue) -> bool:
        if turns & self.done == self.done:
            return True
        if (turns, queue) in self.seen:
            return False
        self.seen.add((turns, queue))
        soonest = min(op.ret for n, op in enumerate(self.history) if not turns >> n & 1)
        for n, op in enumerate(self.history):
            if turns >> n & 1 or op.invoke > soonest:
                continue
            for after in self.turn(op, queue):
                if self.goes_on(turns | 1 << n, after):
                    return True
        return any(self.goes_on(turns, after) for after in self.skipped(queue))

    def turn(self, op: Op, queue: Queue) -> Iterator[Queue]:
        """The states that the operation may leave; none if its answer is wrong here."""
        if op.op == "put":
            yield from self.put(op, queue)
        elif self.kind == "events":
            yield from self.read(op, queue)
        else:
            yield from self.get(op, queue)

    def put(self, op: Op, queue: Queue) -> Iterator[Queue]:
        is_full = self.capacity is not None and len(queue.items) == self.capacity
        if op.outcome == "full" and op.is_weak:
            if queue.tail >= op.ticket + self.capacity and not self.was_got_before(op):
                yield queue
        elif op.outcome == "full":
            if is_full and op.ticket in (None, queue.head):
                yield queue
        elif op.ticket in (None, queue.tail):
            if is_full and (self.kind != "overwriting" or (None, queue.items[0]) in self.only_named):
                return
            kept = queue._replace(head=queue.head + 1, items=queue.items[1:]) if is_full else queue
            yield kept._replace(items=(*kept.items, op.value))
            if op.outcome == "pending" and self.has_tickets:
                yield kept._replace(items=(*kept.items, TOMBSTONE))

    def get(self, op: Op, queue: Queue) -> Iterator[Queue]:
        if op.outcome == "empty" and op.is_weak:
            if queue.head >= op.ticket and not self.was_put_before(op):
                yield queue
        elif op.outcome == "empty":
            if not queue.items and op.ticket in (None, queue.head):
                yield queue
        elif queue.items and self.fits(op, queue.head, queue.items[0]):
            yield queue._replace(head=queue.head + 1, items=queue.items[1:])

    def read(self, op: Op, queue: Queue) -> Iterator[Queue]:
        number = self.readers.index(op.reader)
        place = queue.places[number]
        if op.outcome == "empty" and op.is_weak:
            if op.ticket <= min(place, queue.tail) and not self.was_put_before(op):
                yield queue
        elif op.outcome == "empty":
            if place == queue.tail and op.ticket in (None, place):
                yield queue
        elif place < queue.tail and self.fits(op, place, queue.items[place]):
            yield self.moved(queue, number)

    def fits(self, op: Op, position: int, item: int | None) -> bool:
        """May the get take this item from this position?"""
        if item is TOMBSTONE or op.ticket not in (None, position):
            return False
        return op.value == item or (op.value is None and (op.reader, item) not in self.only_named)

    def skipped(self, queue: Queue) -> Iterator[Queue]:
        """Tombstones are passed over by nobody in particular, at any time."""
        if self.kind == "events":
            for number, place in enumerate(queue.places):
                if place < queue.tail and queue.items[place] is TOMBSTONE:
                    yield self.moved(queue, number)
        elif queue.items and queue.items[0] is TOMBSTONE:
            yield queue._replace(head=queue.head + 1, items=queue.items[1:])

    @staticmethod
    def moved(queue: Queue, number: int) -> Queue:
        places = list(queue.places)
        places[number] += 1
        return queue._replace(places=tuple(places))

    def was_put_before(self, answer: Op) -> bool:
        return any(
            op.op == "put" and op.outcome == "ok" and op.ticket == answer.ticket and op.ret < answer.invoke
            for op in self.history
        )

    def was_got_before(self, answer: Op) -> bool:
        return any(
            op.op == "get" and op.outcome == "ok" and op.ticket == answer.ticket and op.ret < answer.invoke
            for op in self.history
        )
