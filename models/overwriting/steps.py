"""The steps of a put and of a get. Each function is one atomic step.

It returns the memory, the process and what is known, or None if the process must wait for a change.
"""

from __future__ import annotations

from collections.abc import Callable

from models.core.participant import PromiseBroken
from models.overwriting.lease import LEASE_STEPS, after_unlock, claim_for_lease
from models.overwriting.world import (
    DISORDERED,
    FINISHED,
    HEADER,
    LOST,
    MISCOUNTED,
    READER,
    TORN,
    TWICE,
    WRITER,
    Change,
    Known,
    Memory,
    Message,
    Process,
    Reading,
    World,
    first_step,
    next_operation,
)

Outcome = tuple[Memory, Process, Known] | None
SETTLED = "read the message's lock"  # the next step of the header's owner, once no change is committed


def read_header(world: World, line: int) -> Outcome:
    memory, process = world.memory, world.processes[line]
    if process.operation == "g" and memory.length == 0:
        if world.size.has_leases:
            return memory, process._replace(at="scan the leased messages"), world.known
        return memory, next_operation(process), world.known
    seen = memory.header
    if seen is not None and (world.is_alive(seen) or not world.rules.dead_owner_is_replaced):
        return None
    return memory, process._replace(at="take the header", seen=seen), world.known


def take(world: World, line: int) -> Outcome:
    memory, process = world.memory, world.processes[line]
    if memory.header != process.seen:
        return memory, process._replace(at="read the header", seen=None), world.known
    taken = memory._replace(header=world.word(line, HEADER))
    at = "make: lock the message" if memory.is_committed and world.rules.taker_settles else SETTLED
    if not world.rules.taker_settles:
        taken = taken._replace(is_committed=False)
    return taken, process._replace(at=at, seen=None, back_to=SETTLED), world.known


def read_message_lock(world: World, line: int) -> Outcome:
    """Of the message that the claim is about. A later step asks whether the lock's owner lives."""
    return world.memory, world.processes[line]._replace(at="claim", seen=world.lock_for(line)), world.known


def claim(world: World, line: int) -> Outcome:
    process = world.processes[line]
    if process.operation == "l":
        return claim_for_lease(world, line)
    change = claimed_get(world, line) if process.operation == "g" else claimed_put(world, line)
    if change is None:
        gives_up = process.operation == "k" or world.memory.length == 0
        at = "unlock, give up" if gives_up else "unlock, try again"
        return world.memory, process._replace(at=at), world.known
    at = "write the journal" if world.rules.written_before_committed else "commit"
    return world.memory, process._replace(at=at, change=change), world.known


def claimed_put(world: World, line: int) -> Change | None:
    memory, rules = world.memory, world.rules
    may_overwrite = world.processes[line].operation == "p"
    capacity = world.size.capacity
    is_full = memory.length == capacity
    index = (memory.start + memory.length) % capacity
    seen = world.processes[line].seen
    is_dead = False
    if seen is not None and not (
        seen.role == READER and (may_overwrite or not rules.non_overwriting_put_spares_readers)
    ):
        is_dead = not world.is_alive(seen)
        if not is_dead and (seen.role == READER or rules.living_writer_is_waited_for):
            return None
        seen = world.left_in(line)
    is_torn = is_dead and seen is not None and seen.role == WRITER
    if is_full and not may_overwrite and not is_torn:
        return None
    counts = memory.counts._replace(puts=memory.counts.puts + 1)
    if is_full and is_torn:
        counts = counts._replace(torn=counts.torn + 1)
    elif is_full:
        counts = counts._replace(dropped=counts.dropped + 1)
    start = (memory.start + 1) % capacity if is_full else memory.start
    length = memory.length if is_full else memory.length + 1
    return Change(start, length, index, world.word(line, WRITER), -1, Reading(), counts)


def claimed_get(world: World, line: int) -> Change | None:
    memory = world.memory
    if memory.length == 0:
        return None
    seen = world.processes[line].seen
    if seen is not None and world.is_alive(seen):
        return None
    seen = world.left_in(line)
    start, length = (memory.start + 1) % world.size.capacity, memory.length - 1
    counts = memory.counts
    if seen is not None and seen.role == WRITER and world.rules.dead_writer_is_torn:
        counts = counts._replace(torn=counts.torn + 1)
        return Change(start, length, memory.start, None, -1, Reading(), counts)
    counts = counts._replace(taken=counts.taken + 1)
    return Change(start, length, memory.start, world.word(line, READER), line, begun(memory.readings[line]), counts)


def begun(reading: Reading) -> Reading:
    """What the line's last owner was reading when it died is lost with it."""
    return Reading(True, reading.lost + reading.is_reading, reading.overwritten)


def write_journal(world: World, line: int) -> Outcome:
    process = world.processes[line]
    at = "commit" if world.rules.written_before_committed else "make: lock the message"
    if not world.rules.committed_before_made:
        at = "make: lock the message"
    changed = process._replace(at=at, back_to="unlock")
    known = world.known if at == "commit" else counted(world, process)
    return world.memory._replace(journal=process.change), changed, known


def commit(world: World, line: int) -> Outcome:
    process = world.processes[line]
    is_written = world.rules.written_before_committed
    at = "make: lock the message" if is_written else "write the journal"
    memory = world.memory._replace(is_committed=True)
    known = counted(world, process) if is_written else world.known
    return memory, process._replace(at=at, back_to="unlock"), known


def counted(world: World, process: Process) -> Known:
    known = world.known
    return known if process.operation in "gl" else known._replace(put=(*known.put, process.item))


def journal_of(world: World) -> Change:
    if world.memory.journal is None:
        raise PromiseBroken(MISCOUNTED, "a change is committed that was never written down")
    return world.memory.journal


def lock_message(world: World, line: int) -> Outcome:
    change, process, memory = journal_of(world), world.processes[line], world.memory
    if change.message >= 0:
        memory = memory.with_message(change.message, memory.messages[change.message]._replace(lock=change.lock))
    is_named_first = change.cell >= 0 and world.rules.cell_named_before_taken
    at = "make: name the cell" if is_named_first else "make: store start and length"
    return memory, process._replace(at=at), world.known


def name_cell(world: World, line: int) -> Outcome:
    change, process = journal_of(world), world.processes[line]
    assert change.filled is not None
    memory = world.memory.with_cell(change.cell, change.filled)
    return memory, process._replace(at="make: store start and length"), world.known


def store_ring_state(world: World, line: int) -> Outcome:
    """Whoever looks without the lock, a join for example, must see a leased message in the ring or in its cell."""
    change, process = journal_of(world), world.processes[line]
    memory = world.memory._replace(start=change.start, length=change.length)
    is_lease = change.cell >= 0 and change.filled is not None and change.filled.word is not None
    if is_lease and memory.leased[change.cell].word is None:
        raise PromiseBroken(LOST, "a message is neither in the ring nor in a cell")
    return memory, process._replace(at="make: count"), world.known


def count(world: World, line: int) -> Outcome:
    change, process, now = journal_of(world), world.processes[line], world.memory.counts
    counts = change.counts
    if not world.rules.journal_is_absolute and process.back_to == SETTLED:
        counts = now._replace(puts=now.puts + 1)  # what the dead had committed, added once more
    return world.memory._replace(counts=counts), process._replace(at="make: note the get"), world.known


def note_get(world: World, line: int) -> Outcome:
    change, process, memory = journal_of(world), world.processes[line], world.memory
    if change.line >= 0:
        memory = memory.with_reading(change.line, change.reading)
    if change.cell >= 0 and change.filled is not None and not world.rules.cell_named_before_taken:
        memory = memory.with_cell(change.cell, change.filled)
    return memory, process._replace(at="make: clear the journal"), world.known


def clear_journal(world: World, line: int) -> Outcome:
    process = world.processes[line]
    memory = world.memory._replace(is_committed=False, journal=None)
    return memory, process._replace(at=process.back_to, back_to=""), world.known


def unlock(world: World, line: int) -> Outcome:
    memory, process = unlocked(world, line), world.processes[line]
    change = process.change
    if process.operation == "l":
        at = after_unlock(world, line)
    elif process.operation != "g":
        at = "copy the first word" if world.rules.copied_before_published else "publish"
    elif change is not None and change.line >= 0:
        at = "read the first word"
    else:
        at = "read the header"  # a torn one was skipped
    return memory, process._replace(at=at), world.known


def unlock_to_scan_leased(world: World, line: int) -> Outcome:
    memory, process = unlocked(world, line), world.processes[line]
    lock = memory.messages[memory.start].lock
    is_busy = memory.length and lock is not None and lock.role == WRITER and world.is_alive(lock)
    at = "wait for the message" if is_busy and not process.is_ending else "scan the leased messages"
    return memory, process._replace(at=at), world.known


def unlock_to_try_again(world: World, line: int) -> Outcome:
    process = world.processes[line]
    return unlocked(world, line), process._replace(at="wait for the message"), world.known


def unlock_to_give_up(world: World, line: int) -> Outcome:
    return unlocked(world, line), next_operation(world.processes[line]), world.known


def wait_for_message(world: World, line: int) -> Outcome:
    """Until it is worth another try."""
    memory, process = world.memory, world.processes[line]
    index = memory.start if process.operation in "gl" else (memory.start + memory.length) % world.size.capacity
    lock = memory.messages[index].lock
    if lock is not None and lock.role == WRITER and world.is_alive(lock):
        return None
    return memory, process._replace(at=first_step(process.operation)), world.known


def unlocked(world: World, line: int) -> Memory:
    """The header is free from here on: the sum must be right."""
    memory, known = world.memory, world.known
    if memory.header != world.word(line, HEADER):
        raise PromiseBroken(MISCOUNTED, "the header was another's")
    counts, readings = memory.counts, memory.readings
    busy = sum(reading.is_reading for reading in readings)
    lost = sum(reading.lost for reading in readings)
    overwritten = sum(reading.overwritten for reading in readings)
    if counts.puts != len(known.put):
        raise PromiseBroken(MISCOUNTED, f"{counts.puts} puts are counted, and there were {len(known.put)}")
    leased = sum(cell.word is not None for cell in memory.leased)
    if memory.length != counts.puts - counts.taken - counts.dropped - counts.torn - counts.lost:
        raise PromiseBroken(MISCOUNTED, f"the length is {memory.length}: {counts}")
    if counts.taken - lost - overwritten - busy - leased != len(known.got):
        raise PromiseBroken(MISCOUNTED, f"{len(known.got)} were got: {counts} {readings}")
    gone = len(known.got) + counts.dropped + overwritten + lost + busy + counts.lost + leased
    if memory.length == 0 and len(known.whole) != gone:
        raise PromiseBroken(LOST, f"{len(known.whole)} were whole, and {gone} are accounted for")
    may_overwrite = any("p" in program for program in (*world.size.programs, world.size.newcomer))
    if not may_overwrite and counts.dropped + overwritten:
        raise PromiseBroken(LOST, "an item was overwritten, although no put may overwrite")
    return memory._replace(header=None)


def copy_word(first: bool) -> Callable[[World, int], Outcome]:
    def copy(world: World, line: int) -> Outcome:
        process = world.processes[line]
        assert process.change is not None
        index, item = process.change.message, process.item
        message = world.memory.messages[index]
        message = message._replace(first=item) if first else message._replace(second=item)
        after = "publish" if world.rules.copied_before_published else FINISHED
        memory = world.memory.with_message(index, message)
        if not first and after == FINISHED:
            return memory, next_operation(process), world.known
        return memory, process._replace(at="copy the second word" if first else after), world.known

    return copy


def publish(world: World, line: int) -> Outcome:
    process, known = world.processes[line], world.known
    assert process.change is not None
    index = process.change.message
    memory = world.memory.with_message(index, world.memory.messages[index]._replace(lock=None))
    known = known._replace(whole=known.whole | {process.item})
    if not world.rules.copied_before_published:
        return memory, process._replace(at="copy the first word"), known
    return memory, next_operation(process), known


def read_word(first: bool) -> Callable[[World, int], Outcome]:
    def read(world: World, line: int) -> Outcome:
        process = world.processes[line]
        assert process.change is not None
        message: Message = world.memory.messages[process.change.message]
        if first:
            return world.memory, process._replace(at="read the second word", first=message.first), world.known
        return world.memory, process._replace(at="release the message", second=message.second), world.known

    return read


def release(world: World, line: int) -> Outcome:
    """The last check: a compare-and-swap of the lock, which fails if a writer has come round."""
    process, memory = world.processes[line], world.memory
    assert process.change is not None
    message = memory.messages[process.change.message]
    is_mine = message.lock == process.change.lock
    if is_mine:
        memory = memory.with_message(process.change.message, message._replace(lock=None))
    is_mine |= not world.rules.reader_checks_last
    return memory, process._replace(at="end the get", is_mine=is_mine), world.known


def end_get(world: World, line: int) -> Outcome:
    """One store says that the get has ended, and how."""
    process, reading = world.processes[line], world.memory.readings[line]
    if not world.rules.reader_ends_in_one_store and reading.is_reading and not process.is_mine:
        return world.memory.with_reading(line, reading._replace(is_reading=False)), process, world.known
    ended = Reading(False, reading.lost, reading.overwritten + (not process.is_mine))
    memory = world.memory.with_reading(line, ended)
    if not process.is_mine:
        return memory, process._replace(at="read the header", change=None, first=0, second=0), world.known
    return memory, next_operation(process)._replace(last=order_of(world, process)), delivered(world, process)


def delivered(world: World, process: Process) -> Known:
    known = world.known
    return known._replace(got=(*known.got, process.first))


def order_of(world: World, process: Process) -> int:
    known, item = world.known, process.first
    if process.first != process.second or item not in known.whole:
        raise PromiseBroken(TORN, f"the words {process.first} and {process.second} were got")
    if item in known.got:
        raise PromiseBroken(TWICE, f"{item} was got twice")
    order = known.put.index(item)
    if order < process.last:
        raise PromiseBroken(DISORDERED, f"{item} came after a later one")
    return order


STEPS: dict[str, Callable[[World, int], Outcome]] = {
    "read the header": read_header,
    "take the header": take,
    "read the message's lock": read_message_lock,
    "claim": claim,
    "write the journal": write_journal,
    "commit": commit,
    "make: lock the message": lock_message,
    "make: name the cell": name_cell,
    "make: store start and length": store_ring_state,
    "make: count": count,
    "make: note the get": note_get,
    "make: clear the journal": clear_journal,
    "unlock": unlock,
    "unlock, try again": unlock_to_try_again,
    "unlock, give up": unlock_to_give_up,
    "unlock, scan the leased messages": unlock_to_scan_leased,
    "wait for the message": wait_for_message,
    "copy the first word": copy_word(first=True),
    "copy the second word": copy_word(first=False),
    "publish": publish,
    "read the first word": read_word(first=True),
    "read the second word": read_word(first=False),
    "release the message": release,
    "end the get": end_get,
} | LEASE_STEPS
