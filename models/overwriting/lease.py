"""The steps of a lease of one message, and of whoever is given what the dead have left on the shelf.

As native/overwriting_lease.hpp: claim, copy to the shelf, keep, release. To give back is to die: it has no steps here.
"""

from __future__ import annotations

from collections.abc import Callable

from models.core.participant import PromiseBroken
from models.overwriting.world import (
    DISORDERED,
    FILLER,
    KEEPER,
    OVERTAKEN,
    READER,
    TORN,
    TWICE,
    WRITER,
    Change,
    Known,
    Memory,
    Place,
    Process,
    Reading,
    Word,
    World,
    next_operation,
)

Outcome = tuple[Memory, Process, Known] | None


def look_at_shelf(world: World, line: int) -> Outcome:
    """What the gone have left first; then a free place for what is at the front, for who leases."""
    memory, process = world.memory, world.processes[line]
    process = process._replace(place=-1, owner=None, is_ending=False, change=None)
    for number, place in enumerate(memory.shelf):
        if is_left(world, line, place.word, KEEPER):
            return memory, process._replace(at="take over", place=number, owner=place.word), world.known
    if process.operation == "g":
        return memory, next_operation(process), world.known
    for number, place in enumerate(memory.shelf):
        if is_left(world, line, place.word, FILLER) or (place.word is not None and place.word.role == OVERTAKEN):
            found = process._replace(at="look at the header", place=number, owner=place.word, is_ending=True)
            return memory, found, world.known
    free = [number for number, place in enumerate(memory.shelf) if place.word is None]
    if memory.length == 0 or not free:
        return memory, next_operation(process), world.known
    return memory, process._replace(at="look at the header", place=free[0]), world.known


def is_left(world: World, line: int, word: Word | None, role: str) -> bool:
    if word is None or word.role != role:
        return False
    asks = world.rules.keeper_is_asked_for or role != KEEPER
    return not world.is_alive(word) if asks else word.line != line


def take_over(world: World, line: int) -> Outcome:
    memory, process = world.memory, world.processes[line]
    place = memory.shelf[process.place]
    if place.word != process.owner:
        return memory, process._replace(at="look at the shelf"), world.known
    memory = memory.with_place(process.place, place._replace(word=world.word(line, KEEPER)))
    return memory, process._replace(at="release the place", owner=None), world.known


def claim_for_shelf(world: World, line: int) -> Outcome:
    """Under the header's lock: the change that takes a message to its place, or ends a place that came to nothing."""
    memory, process, rules = world.memory, world.processes[line], world.rules
    again = memory, process._replace(at="unlock, look at the shelf"), world.known
    if process.is_ending:
        if memory.shelf[process.place].word != process.owner:
            return again
        change = ended(world, process)
        if not rules.place_ends_by_one_change:
            memory = memory.with_place(process.place, Place())
        return memory, process._replace(at="write the journal", change=change), world.known
    taken = claimed(world, line)
    if taken is None:
        return again
    return memory, process._replace(at="write the journal", change=taken), world.known


def ended(world: World, process: Process) -> Change:
    memory, counts = world.memory, world.memory.counts
    counts = counts._replace(taken=counts.taken - 1)
    assert process.owner is not None
    if process.owner.role == OVERTAKEN:
        counts = counts._replace(dropped=counts.dropped + 1)
    else:
        counts = counts._replace(lost=counts.lost + 1)
    return Change(memory.start, memory.length, -1, None, -1, Reading(), counts, process.place, Place())


def claimed(world: World, line: int) -> Change | None:
    memory, process = world.memory, world.processes[line]
    if memory.length == 0 or memory.shelf[process.place].word is not None:
        return None
    seen = process.seen
    if seen is not None and world.is_alive(seen):
        return None
    seen = world.left_in(line)
    start, length, counts = (memory.start + 1) % world.size.capacity, memory.length - 1, memory.counts
    if seen is not None and seen.role == WRITER:
        return Change(start, length, memory.start, None, -1, Reading(), counts._replace(torn=counts.torn + 1))
    position = counts.puts - memory.length
    counts = counts._replace(taken=counts.taken + 1)
    place = Place(world.word(line, FILLER), position)
    noted = process.place if world.rules.place_is_in_the_change else -1
    return Change(start, length, memory.start, world.word(line, READER), -1, Reading(), counts, noted, place)


def after_unlock(world: World, line: int) -> str:
    """Where a lease goes on when its change is made."""
    process = world.processes[line]
    if process.is_ending or process.change is None or process.change.filled is None:
        return "look at the shelf"  # a place was ended, or a torn message skipped
    if not world.rules.place_is_in_the_change:
        return "name the place"
    return "copy to the shelf" if world.rules.copied_before_kept else "keep"


def name_place(world: World, line: int) -> Outcome:
    """Of a variant: too late."""
    process = world.processes[line]
    assert process.change is not None
    assert process.change.filled is not None
    memory = world.memory.with_place(process.place, process.change.filled)
    return memory, process._replace(at="copy to the shelf"), world.known


def copy_to_shelf(first: bool) -> Callable[[World, int], Outcome]:
    def copy(world: World, line: int) -> Outcome:
        memory, process = world.memory, world.processes[line]
        assert process.change is not None
        message, place = memory.messages[process.change.index], memory.shelf[process.place]
        place = place._replace(first=message.first) if first else place._replace(second=message.second)
        at = "copy the rest to the shelf" if first else "look last"
        return memory.with_place(process.place, place), process._replace(at=at), world.known

    return copy


def look_last(world: World, line: int) -> Outcome:
    """As the last look of a get: a compare-and-swap of the message's lock."""
    memory, process = world.memory, world.processes[line]
    assert process.change is not None
    message = memory.messages[process.change.index]
    if message.lock != process.change.lock and world.rules.reader_looks_last:
        return memory, process._replace(at="say that it was overtaken"), world.known
    if message.lock == process.change.lock:
        memory = memory.with_message(process.change.index, message._replace(lock=None))
    at = "keep" if world.rules.copied_before_kept else "release the place"
    return memory, process._replace(at=at), world.known


def say_overtaken(world: World, line: int) -> Outcome:
    """One store: from here on it counts as overwritten, whoever gets the header's lock to end the place."""
    memory, process = world.memory, world.processes[line]
    word = world.word(line, OVERTAKEN)
    memory = memory.with_place(process.place, memory.shelf[process.place]._replace(word=word))
    return memory, process._replace(at="look at the header", is_ending=True, owner=word), world.known


def keep(world: World, line: int) -> Outcome:
    """One store: from here on it outlives its holder."""
    memory, process = world.memory, world.processes[line]
    place = memory.shelf[process.place]._replace(word=world.word(line, KEEPER))
    at = "release the place" if world.rules.copied_before_kept else "copy to the shelf"
    return memory.with_place(process.place, place), process._replace(at=at), world.known


def release_place(world: World, line: int) -> Outcome:
    memory, process, known = world.memory, world.processes[line], world.known
    place = memory.shelf[process.place]
    if place.first != place.second or place.first not in known.whole:
        raise PromiseBroken(TORN, f"the words {place.first} and {place.second} were leased")
    if place.first in known.got:
        raise PromiseBroken(TWICE, f"{place.first} was got twice")
    if known.put.index(place.first) != place.position:
        raise PromiseBroken(DISORDERED, f"{place.first} has the position {place.position}")
    known = known._replace(got=(*known.got, place.first))
    return memory.with_place(process.place, Place()), next_operation(process), known


LEASE_STEPS: dict[str, Callable[[World, int], Outcome]] = {
    "look at the shelf": look_at_shelf,
    "take over": take_over,
    "name the place": name_place,
    "copy to the shelf": copy_to_shelf(first=True),
    "copy the rest to the shelf": copy_to_shelf(first=False),
    "look last": look_last,
    "say that it was overtaken": say_overtaken,
    "keep": keep,
    "release the place": release_place,
}
