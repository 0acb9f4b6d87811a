"""The steps of a lease of one message, and of the redelivery of a message that a dead holder has left.

Claim, copy to a cell, hold, release. Giving a message back leaves the cell as a death does, so it has no steps here.
"""

from __future__ import annotations

from collections.abc import Callable

from models.core.participant import PromiseBroken
from models.overwriting.world import (
    DISORDERED,
    FILLER,
    HOLDER,
    OVERTAKEN,
    READER,
    TORN,
    TWICE,
    WRITER,
    Change,
    Known,
    LeasedMessage,
    Memory,
    Process,
    Reading,
    Word,
    World,
    next_operation,
)

Outcome = tuple[Memory, Process, Known] | None


def scan_leased(world: World, line: int) -> Outcome:
    """First the messages that dead holders have left; then, for a lease, a free cell for the message at the front."""
    memory, process = world.memory, world.processes[line]
    process = process._replace(cell=-1, owner=None, is_ending=False, change=None)
    for number, cell in enumerate(memory.leased):
        if is_left(world, line, cell.word, HOLDER):
            return memory, process._replace(at="take over", cell=number, owner=cell.word), world.known
    if process.operation == "g":
        return memory, next_operation(process), world.known
    for number, cell in enumerate(memory.leased):
        if is_left(world, line, cell.word, FILLER) or (cell.word is not None and cell.word.role == OVERTAKEN):
            found = process._replace(at="read the header", cell=number, owner=cell.word, is_ending=True)
            return memory, found, world.known
    free = [number for number, cell in enumerate(memory.leased) if cell.word is None]
    if memory.length == 0 or not free:
        return memory, next_operation(process), world.known
    return memory, process._replace(at="read the header", cell=free[0]), world.known


def is_left(world: World, line: int, word: Word | None, role: str) -> bool:
    if word is None or word.role != role:
        return False
    asks = world.rules.holder_must_be_dead or role != HOLDER
    return not world.is_alive(word) if asks else word.line != line


def take_over(world: World, line: int) -> Outcome:
    memory, process = world.memory, world.processes[line]
    cell = memory.leased[process.cell]
    if cell.word != process.owner:
        return memory, process._replace(at="scan the leased messages"), world.known
    memory = memory.with_cell(process.cell, cell._replace(word=world.word(line, HOLDER)))
    return memory, process._replace(at="release the cell", owner=None), world.known


def claim_for_lease(world: World, line: int) -> Outcome:
    """Under the header's lock: the change that takes a message to its cell, or ends a cell that came to nothing."""
    memory, process, rules = world.memory, world.processes[line], world.rules
    again = memory, process._replace(at="unlock, scan the leased messages"), world.known
    if process.is_ending:
        if memory.leased[process.cell].word != process.owner:
            return again
        change = ended(world, process)
        if not rules.cell_ends_by_one_change:
            memory = memory.with_cell(process.cell, LeasedMessage())
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
    return Change(memory.start, memory.length, -1, None, -1, Reading(), counts, process.cell, LeasedMessage())


def claimed(world: World, line: int) -> Change | None:
    memory, process = world.memory, world.processes[line]
    if memory.length == 0 or memory.leased[process.cell].word is not None:
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
    cell = LeasedMessage(world.word(line, FILLER), position)
    noted = process.cell if world.rules.cell_is_in_the_change else -1
    return Change(start, length, memory.start, world.word(line, READER), -1, Reading(), counts, noted, cell)


def after_unlock(world: World, line: int) -> str:
    """Where a lease goes on when its change is made."""
    process = world.processes[line]
    if process.is_ending or process.change is None or process.change.filled is None:
        return "scan the leased messages"  # a cell was ended, or a torn message skipped
    if not world.rules.cell_is_in_the_change:
        return "name the cell"
    return "copy to the cell" if world.rules.copied_before_held else "hold"


def name_cell(world: World, line: int) -> Outcome:
    """Of a variant: too late."""
    process = world.processes[line]
    assert process.change is not None
    assert process.change.filled is not None
    memory = world.memory.with_cell(process.cell, process.change.filled)
    return memory, process._replace(at="copy to the cell"), world.known


def copy_to_cell(first: bool) -> Callable[[World, int], Outcome]:
    def copy(world: World, line: int) -> Outcome:
        memory, process = world.memory, world.processes[line]
        assert process.change is not None
        message, cell = memory.messages[process.change.message], memory.leased[process.cell]
        cell = cell._replace(first=message.first) if first else cell._replace(second=message.second)
        at = "copy the rest to the cell" if first else "check the lock last"
        return memory.with_cell(process.cell, cell), process._replace(at=at), world.known

    return copy


def check_last(world: World, line: int) -> Outcome:
    """As the last check of a get: a compare-and-swap of the message's lock."""
    memory, process = world.memory, world.processes[line]
    assert process.change is not None
    message = memory.messages[process.change.message]
    if message.lock != process.change.lock and world.rules.reader_checks_last:
        return memory, process._replace(at="say that it was overtaken"), world.known
    if message.lock == process.change.lock:
        memory = memory.with_message(process.change.message, message._replace(lock=None))
    at = "hold" if world.rules.copied_before_held else "release the cell"
    return memory, process._replace(at=at), world.known


def say_overtaken(world: World, line: int) -> Outcome:
    """One store: from here on the message counts as overwritten, whichever participant ends the cell."""
    memory, process = world.memory, world.processes[line]
    word = world.word(line, OVERTAKEN)
    memory = memory.with_cell(process.cell, memory.leased[process.cell]._replace(word=word))
    return memory, process._replace(at="read the header", is_ending=True, owner=word), world.known


def hold(world: World, line: int) -> Outcome:
    """One store: from here on the message outlives its holder."""
    memory, process = world.memory, world.processes[line]
    cell = memory.leased[process.cell]._replace(word=world.word(line, HOLDER))
    at = "release the cell" if world.rules.copied_before_held else "copy to the cell"
    return memory.with_cell(process.cell, cell), process._replace(at=at), world.known


def release_cell(world: World, line: int) -> Outcome:
    memory, process, known = world.memory, world.processes[line], world.known
    cell = memory.leased[process.cell]
    if cell.first != cell.second or cell.first not in known.whole:
        raise PromiseBroken(TORN, f"the words {cell.first} and {cell.second} were leased")
    if cell.first in known.got:
        raise PromiseBroken(TWICE, f"{cell.first} was got twice")
    if known.put.index(cell.first) != cell.position:
        raise PromiseBroken(DISORDERED, f"{cell.first} has the position {cell.position}")
    known = known._replace(got=(*known.got, cell.first))
    return memory.with_cell(process.cell, LeasedMessage()), next_operation(process), known


LEASE_STEPS: dict[str, Callable[[World, int], Outcome]] = {
    "scan the leased messages": scan_leased,
    "take over": take_over,
    "name the cell": name_cell,
    "copy to the cell": copy_to_cell(first=True),
    "copy the rest to the cell": copy_to_cell(first=False),
    "check the lock last": check_last,
    "say that it was overtaken": say_overtaken,
    "hold": hold,
    "release the cell": release_cell,
}
