"""What a queue says of itself."""

from typing import NamedTuple

__all__ = [
    "BoundedStats",
    "EventStats",
    "GrowingStats",
    "OverwritingStats",
    "ProducerInfo",
    "QueueInfo",
    "ReaderInfo",
    "SlotStats",
]


class QueueInfo(NamedTuple):
    """A queue in the directory."""

    name: str
    kind: str


class ProducerInfo(NamedTuple):
    """A name that put_once keeps. What a killed call got in last shows once it is repeated."""

    name: str
    sequence: int
    """The last one that was begun."""
    done: int
    """How many of its items are in."""
    total: int
    """How many items it has."""


class BoundedStats(NamedTuple):
    """The counters of a BoundedQueue. Exact when no other thread is working on it, a snapshot otherwise."""

    capacity: int
    """Slots."""
    size: int
    """Items that are there or on their way in or out."""
    slots_pushed: int
    """Slots ever claimed by puts: the push position."""
    slots_popped: int
    """Slots ever claimed by gets: the pop position."""
    slot_bytes: int
    """Bytes a slot holds; 0 for references within a process."""
    total_bytes: int
    """Bytes of memory, headers included."""
    is_shut_down: bool
    participants: int
    """Threads with a line in the participant table, in any process; 0 within a process."""
    participants_limit: int
    tombstones: int
    """Slots whose producer was killed before it published; never delivered."""
    redelivered: int
    """Items whose consumer was killed before it had them; delivered to another."""
    leased: int
    """Items that a consumer has claimed and not released: on lease, just being got, or to be redelivered."""


class EventStats(NamedTuple):
    """The counters of an EventQueue. Positions are exact at one moment; bytes follow the chunks."""

    end: int
    """Where the next item goes: how many were ever put."""
    earliest: int
    """The oldest position that is kept."""
    chunk_items: tuple[int, ...]
    """How many items each kept chunk was made for, the oldest first."""
    used_bytes: int
    """Of the kept chunks; at most max_bytes."""
    max_bytes: int
    resident_bytes: int
    """What the whole queue takes of memory or disk just now, tables and a spare chunk included."""
    readers: int
    """Readers of all kinds, attached or not."""
    participants: int
    """Threads that put, in any process."""
    participants_limit: int
    is_shut_down: bool
    dropped: int
    """Readers that were dropped because they were the slowest of a full queue."""
    repairs: int
    """Times that a writer died with the lock, and another put things right."""
    synced: int
    """Everything before this position outlives the machine; 0 where nothing was asked to."""
    epoch: int = 0
    """How often the log was cut after a crash of the machine."""


class ReaderInfo(NamedTuple):
    """A reader of an EventQueue."""

    name: str | None
    """None: ephemeral."""
    position: int
    """It needs everything from here on."""
    lag: int
    is_attached: bool
    """True if a live process holds it."""
    is_dropped: bool


class OverwritingStats(NamedTuple):
    """The counters of an OverwritingQueue. Exact when no other thread is working on it, a snapshot otherwise.

    ``puts == gets + overwritten + torn + lost_with_reader + discarded + size``, unless a program that is not queueduct
    took part.
    """

    capacity: int
    """Messages."""
    size: int
    """Messages that are there or on their way in."""
    message_bytes: int
    puts: int
    """Messages ever put."""
    gets: int
    """Messages that a consumer got, or is just getting, or has on lease."""
    overwritten: int
    """Messages that no consumer got because later ones needed their place, also while a consumer was reading them."""
    torn: int
    """Messages whose writer was killed in the middle; never delivered."""
    lost_with_reader: int
    """Messages whose reader was killed before it had them."""
    redelivered: int
    """Messages whose lease ended before they were released, and that came again; they count once among the others."""
    discarded: int
    """Messages that a shutdown at once has thrown away."""
    total_bytes: int
    """Bytes of memory, headers included."""
    is_shut_down: bool
    participants: int
    """Threads with a line in the participant table, in any process."""
    participants_limit: int
    leased: int
    """Messages on lease, or left by a lease for another."""


class SlotStats(NamedTuple):
    """The counters of a SlotQueue. Exact when no other thread is working on it, a snapshot otherwise."""

    capacity: int
    """How many slots may be in use at a time."""
    slots: int
    """How many there are: free, loaned, queued and taken ones together."""
    size: int
    """Items that can be taken."""
    free: int
    """Slots that are free."""
    loaned: int
    """Slots that are being filled."""
    queued: int
    """Slots with an item that no consumer has taken, or that is to be delivered again."""
    taken: int
    """Slots whose item is being read."""
    published: int
    """Items ever published: the position of the next one."""
    slot_bytes: int
    total_bytes: int
    """Bytes of memory, headers included."""
    is_shut_down: bool
    participants: int
    """Threads with a line in the participant table, in any process."""
    participants_limit: int
    evicted: int
    """Items that put(overwrite=True) and set_capacity pushed out."""
    recovered: int
    """Slots whose holder was killed, and that came back."""
    redelivered: int
    """Items that were delivered again, since their taker was killed or gave them back."""
    leased: int
    """Items that a consumer has taken and not released, by take, get or lease: the same as taken."""


class GrowingStats(NamedTuple):
    """The counters of a GrowingQueue. Exact when no other thread is working on it, a snapshot otherwise."""

    level_slots: tuple[int, ...]
    """Slots of each sub-queue, the first first."""
    read_level: int
    """Which one is read; never more than written_level."""
    written_level: int
    """Which one is written."""
    size: int
    """Items that are there or on their way in or out."""
    position: int
    """Where the next item goes: it rises through all sub-queues."""
    slot_bytes: int
    """Bytes a slot holds; 0 for references within a process."""
    resident_bytes: int
    """What the whole queue takes of memory just now; 0 within a process, where it is not counted."""
    reserved_bytes: int
    """What it may take without asking further; never more than max_bytes."""
    max_bytes: int
    """0: no limit."""
    grown: int
    """Times that a sub-queue was opened because the one before was full."""
    shrunk: int
    """Times that a calm queue went back to its first sub-queue."""
    is_shut_down: bool
    participants: int
    """Threads with a line in the participant table, in any process; 0 within a process."""
    participants_limit: int
    tombstones: int
    """Slots whose producer was killed before it published; never delivered."""
    redelivered: int
    """Items whose consumer was killed before it had them; delivered to another."""
    leased: int
    """Items that a consumer has claimed and not released: on lease, just being got, or to be redelivered."""
