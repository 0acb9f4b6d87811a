"""The log of events: its lock, chunks and readers, under kills at every step.

The algorithm reads like the native one: `locking`, `repairing`, `chunking`, `writing`, `reading`.
`python -m models.events_log --help` runs it.
"""

from models.events_log.model import EventsModel
from models.events_log.rules import LOG, VARIANTS, Configuration

__all__ = ["LOG", "VARIANTS", "Configuration", "EventsModel"]
