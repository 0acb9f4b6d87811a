"""Many queues watched over time: rates, lag, who takes part, what was lost. Plain values for commands, pages, metrics.

``Monitor`` looks at every queue of a directory through handles that never write, and returns a ``Snapshot``.
"""

from queueduct.monitoring.judging import worst
from queueduct.monitoring.monitor import Monitor
from queueduct.monitoring.seen import (
    Detail,
    History,
    ParticipantSeen,
    QueueSeen,
    Rates,
    ReaderSeen,
    Snapshot,
    State,
    Status,
    Totals,
    as_json,
)

__all__ = [
    "Detail",
    "History",
    "Monitor",
    "ParticipantSeen",
    "QueueSeen",
    "Rates",
    "ReaderSeen",
    "Snapshot",
    "State",
    "Status",
    "Totals",
    "as_json",
    "worst",
]
