"""What a queue says of itself: one word for one thing.

A field that several kinds have means the same in each of them, which BoundedStats says, or the first kind that has it;
such fields come first, in one order, but for the counters of what participants did, which come last. All are exact when
no other thread is working on the queue, else a snapshot.
"""

from datetime import datetime
from typing import NamedTuple

__all__ = [
    "BoundedStats",
    "EventStats",
    "GrowingStats",
    "OverwritingStats",
    "ParticipantInfo",
    "ProducerInfo",
    "QueueInfo",
    "ReaderInfo",
    "SlotStats",
]


class QueueInfo(NamedTuple):
    """A queue in the directory."""

    name: str
    kind: str
    created: datetime
    """In UTC."""
    creator: int
    """The pid of the process that created it, in that process's own pid namespace."""


class ParticipantInfo(NamedTuple):
    """A participant of a queue: a thread that has used it, in any process, or a lease.

    The counters are the line's: they go on from what the line's earlier owners have counted.
    """

    pid: int
    """In the pid namespace of its process."""
    thread: int
    """The thread's number, as ``threading.get_native_id()`` says it; of a lease, of the thread that made it."""
    command: str | None
    """The command line of its process; None if this process cannot know it: it is gone, or in another container."""
    alive: bool
    """False if it is dead, and what it left is not recovered yet."""
    last_use: datetime
    """When it became a participant, or last woke from a wait, in UTC. Between waits the counters tell of its use."""
    owners: int
    """How many owners the line has had, this one included."""
    items_put: int
    bytes_put: int
    items_got: int
    """0 in an EventQueue: its readers count what they got in lines of their own, which stats() sums up."""
    bytes_got: int
    waits_for_room: int
    waits_for_items: int
    waited_seconds: float


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
    """The counters of a BoundedQueue."""

    capacity: int
    """Slots."""
    size: int
    """Items that a consumer can get, or that are on their way in; those to be delivered again included."""
    leased: int
    """Items that a live consumer has claimed and not released: on lease, or just being got."""
    redelivered: int
    """Deliveries of items that a consumer had before, which was killed or gave them back."""
    push_position: int
    """The position of the next slot to put into: slots ever claimed by puts."""
    pop_position: int
    """The position of the next slot to get from: slots ever claimed by gets."""
    tombstones: int
    """Slots whose producer was killed before it published; never delivered."""
    slot_bytes: int
    """Bytes a slot holds; 0 for references within a process."""
    resident_bytes: int
    """Bytes of memory or disk that the whole queue takes just now, headers included."""
    is_shut_down: bool
    participants: int
    """Lines of the participant table in use: one a thread, in any process, and except of slots one a lease."""
    participants_limit: int
    items_put: int
    """Items that participants have put since the queue was made. This field and the next six only rise."""
    bytes_put: int
    """Their bytes, as they are in the queue; 0 for references within a process."""
    items_got: int
    """Items that consumers got and released: by get, or by the end of their lease."""
    bytes_got: int
    """Their bytes."""
    waits_for_room: int
    """Puts that had to wait; 0 for references within a process, as the next two."""
    waits_for_items: int
    """Gets, or leases, that had to wait."""
    waited_seconds: float
    """How long they waited, all threads together."""


class GrowingStats(NamedTuple):
    """The counters of a GrowingQueue."""

    size: int
    leased: int
    redelivered: int
    push_position: int
    """The position of the next slot to put into: it rises through all sub-queues."""
    pop_position: int
    tombstones: int
    slot_bytes: int
    resident_bytes: int
    """Bytes of memory that the whole queue takes just now; 0 within a process, where they are not counted."""
    max_bytes: int
    """0: no limit."""
    is_shut_down: bool
    participants: int
    participants_limit: int
    level_slots: tuple[int, ...]
    """Slots of each sub-queue, the first first."""
    read_level: int
    """Which one is read; never more than the one that is written."""
    written_level: int
    reserved_bytes: int
    """What it may take without asking further; never more than max_bytes."""
    grown: int
    """Times that a sub-queue was opened because the one before was full."""
    shrunk: int
    """Times that a calm queue went back to its first sub-queue."""
    items_put: int
    bytes_put: int
    items_got: int
    bytes_got: int
    waits_for_room: int
    waits_for_items: int
    waited_seconds: float


class EventStats(NamedTuple):
    """The counters of an EventQueue. Bytes follow the chunks."""

    size: int
    """Items that are kept: those from ``earliest`` to ``end``."""
    resident_bytes: int
    max_bytes: int
    is_shut_down: bool
    participants: int
    participants_limit: int
    end: int
    """The position of the next item."""
    earliest: int
    """The oldest position that is kept."""
    chunk_items: tuple[int, ...]
    """How many items each kept chunk was made for, the oldest first."""
    used_bytes: int
    """Of the kept chunks; at most max_bytes."""
    readers: int
    """Readers of all kinds, attached or not."""
    readers_dropped: int
    """Readers that were dropped because they were the slowest of a full queue."""
    repairs: int
    """Times that a writer died with the lock, and another put things right."""
    synced: int
    """Everything before this position outlives the machine; 0 where nothing was asked to."""
    epoch: int
    """How often the log was cut after a crash of the machine."""
    items_put: int
    bytes_put: int
    items_got: int
    """Items that readers got, each reader's counted."""
    bytes_got: int
    waits_for_room: int
    waits_for_items: int
    waited_seconds: float


class ReaderInfo(NamedTuple):
    """A reader of an EventQueue, as others see it."""

    name: str | None
    """None: ephemeral."""
    committed: int
    """It needs everything from here on, as ``Reader.committed`` says."""
    lag: int
    """Items from there to the end. ``Reader.lag`` counts from what the reader has got."""
    is_attached: bool
    """True if a live process holds it."""
    is_dropped: bool


class OverwritingStats(NamedTuple):
    """The counters of an OverwritingQueue.

    ``puts == gets + overwritten + torn + lost_with_consumer + discarded + size``, unless a program that is not
    queueduct took part.
    """

    capacity: int
    size: int
    leased: int
    """Messages that a live consumer has on lease."""
    redelivered: int
    puts: int
    """Messages ever put."""
    resident_bytes: int
    is_shut_down: bool
    participants: int
    participants_limit: int
    message_bytes: int
    gets: int
    """Messages that a consumer got, or is just getting, or has on lease; a redelivered one counts once."""
    overwritten: int
    """Messages that no consumer got because later ones needed their place, also while a consumer was reading them."""
    torn: int
    """Messages whose writer was killed in the middle; never delivered."""
    lost_with_consumer: int
    """Messages whose consumer was killed before it had them."""
    discarded: int
    """Messages that a shutdown at once has thrown away."""
    items_put: int
    bytes_put: int
    """Of whole messages: ``items_put * message_bytes``; bytes_got likewise."""
    items_got: int
    bytes_got: int
    waits_for_room: int
    waits_for_items: int
    waited_seconds: float


class SlotStats(NamedTuple):
    """The counters of a SlotQueue. At every moment ``free + loaned + queued + leased == slots``."""

    capacity: int
    """How many slots may be in use at a time."""
    size: int
    leased: int
    redelivered: int
    puts: int
    """Items ever put, published loans included: the position of the next one."""
    slot_bytes: int
    resident_bytes: int
    is_shut_down: bool
    participants: int
    participants_limit: int
    slots: int
    """How many slots there are."""
    free: int
    loaned: int
    """Slots that are being filled."""
    queued: int
    """Slots with an item that no live consumer has; the size, unless the queue was shut down at once."""
    evicted: int
    """Items that put(overwrite=True) and set_capacity pushed out."""
    recovered: int
    """Slots whose holder was killed, and that came back."""
    items_put: int
    bytes_put: int
    items_got: int
    bytes_got: int
    waits_for_room: int
    waits_for_items: int
    waited_seconds: float
