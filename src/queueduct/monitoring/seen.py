"""What a monitor has seen, as plain values: one tree that every command, the page and the metrics draw from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from queueduct.monitoring.pipelines import PipelineSeen
from queueduct.stats import ProducerInfo

__all__ = [
    "Detail",
    "History",
    "ParticipantSeen",
    "QueueSeen",
    "Rates",
    "ReaderSeen",
    "Snapshot",
    "State",
    "Status",
    "Totals",
    "as_json",
]


class State(StrEnum):
    """What can be said of a queue as a whole."""

    OPEN = "open"
    SHUT_DOWN = "shut down"
    CORRUPT = "corrupt"
    """Its file contradicts itself, or was truncated; ``error`` says how."""
    UNREADABLE = "unreadable"
    """It could not be looked at for another reason, such as its permissions; ``error`` says which."""


class Status(StrEnum):
    """How a reader of an event queue is doing, over the monitor's window. No threshold decides, only the direction."""

    OK = "ok"
    """It has everything, or its lag does not grow."""
    UNKNOWN = "unknown"
    """It lags, and has not been watched for a whole window yet."""
    UNATTENDED = "unattended"
    """It is durable, and no process has it: its items are kept until one comes."""
    BEHIND = "behind"
    """It moves, and its lag grows."""
    STALLED = "stalled"
    """It does not move, although there are items for it."""
    DROPPED = "dropped"
    """A full queue has dropped it: it has lost items."""


class Rates(NamedTuple):
    """A second, over about the last one."""

    items_in: float = 0.0
    bytes_in: float = 0.0
    items_out: float = 0.0
    bytes_out: float = 0.0
    waits_for_room: float = 0.0
    waits_for_items: float = 0.0


class Totals(NamedTuple):
    """Since the queue was made, as ``stats()`` says it; they only rise."""

    items_put: int = 0
    bytes_put: int = 0
    items_got: int = 0
    bytes_got: int = 0
    waits_for_room: int = 0
    waits_for_items: int = 0
    waited_seconds: float = 0.0


class ReaderSeen(NamedTuple):
    """A reader of an event queue."""

    name: str | None
    """None: ephemeral."""
    label: str
    """Its name, or a number among the ephemeral ones: ``(ephemeral 1)``."""
    committed: int
    """It needs everything from here on."""
    lag: int
    """Items from there to the end."""
    lag_seconds: float
    """How long ago the first of them was put."""
    is_lag_longer: bool
    """True if it was put before the monitor's history begins: then ``lag_seconds`` is the least that it can be."""
    items_out: float
    """Items a second that it moves on by."""
    is_attached: bool
    status: Status


class ParticipantSeen(NamedTuple):
    """A thread that uses the queue, a lease, or a process that did until lately."""

    pid: int
    thread: int
    command: str | None
    state: str
    """``alive``; ``dead``: killed, and what it held is not recovered yet; ``gone``: its process has ended, however;
    ``left``: its process goes on, and has closed the queue."""
    last_use: datetime
    left_seconds: float | None
    """How long ago it was missed, of one that is gone or has left."""
    items_put: int
    items_got: int
    items_in: float
    """Items a second that it puts, and gets."""
    items_out: float
    waits_for_room: int
    waits_for_items: int
    waited_seconds: float


class QueueSeen(NamedTuple):
    """One queue at one moment."""

    name: str
    kind: str
    state: State
    error: str | None
    item: str
    created: datetime | None
    creator: int
    segment: str
    """Tells this queue from a later one of the same name."""
    capacity: int | None
    """In items, of a kind that has such a limit."""
    depth: int
    """Items that are kept."""
    leased: int
    fill: float | None
    """How full it is, from 0 to 1, of what fills first: slots or bytes; None without a limit."""
    oldest_seconds: float
    """How long ago the oldest item was put that somebody still has to get; 0 if there is none."""
    is_oldest_longer: bool
    """True if that was before the monitor's history begins: then it is the least that it can be."""
    resident_bytes: int
    rates: Rates
    totals: Totals
    readers: tuple[ReaderSeen, ...]
    worst: Status | None
    """The worst status of its readers; None without readers."""
    participants: tuple[ParticipantSeen, ...]
    alive: int
    """Participants that live."""
    dead: int
    """Participants that were killed and not recovered yet."""
    gone: int
    """Processes that took part and have ended within the last minute."""
    recoveries: Mapping[str, int]
    """What was put right since the queue was made, by its name in ``stats()``."""
    losses: Mapping[str, int]
    """What no consumer got, likewise."""
    pipelines: tuple[PipelineSeen, ...]
    """Spark queries that read the queue or write to it."""


class Snapshot(NamedTuple):
    """All queues of a directory at one moment."""

    at: float
    """Seconds since the epoch."""
    directory: Path
    error: str | None
    """Why the directory could not be read."""
    queues: tuple[QueueSeen, ...]
    """By name."""

    def queue(self, name: str) -> QueueSeen | None:
        """The queue of that name, or None."""
        return next((each for each in self.queues if each.name == name), None)


class History(NamedTuple):
    """A queue's last minutes, oldest first. The lists have the same length."""

    at: list[float]
    """Seconds since the epoch."""
    items_in: list[float]
    """A second, between this sample and the one before; likewise the next five."""
    bytes_in: list[float]
    items_out: list[float]
    bytes_out: list[float]
    waits_for_room: list[float]
    waits_for_items: list[float]
    depth: list[float]
    lag: dict[str, list[float | None]]
    """Of each reader that is there now and not dropped, in items; None before it came."""
    lag_seconds: dict[str, list[float | None]]


class Detail(NamedTuple):
    """What only the page of one queue shows."""

    queue: QueueSeen
    stats: Mapping[str, Any]
    """All of ``stats()``: levels, chunks, slots."""
    sizes: Mapping[str, int]
    """What the queue was created with."""
    producers: tuple[ProducerInfo, ...]
    """What put_once has recorded."""
    history: History


def as_json(value: Any) -> Any:
    """Returns any part of the tree as what ``json.dumps`` takes: a NamedTuple as an object, a time as ISO text."""
    if isinstance(value, str) or value is None or isinstance(value, bool | int):
        return str(value) if isinstance(value, StrEnum) else value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: as_json(each) for name, each in zip(value._fields, value, strict=True)}
    if isinstance(value, list | tuple):
        return [as_json(each) for each in value]
    if isinstance(value, Mapping):
        return {str(key): as_json(each) for key, each in value.items()}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return str(value)
