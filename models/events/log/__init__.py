"""The log of events: its lock, chunks and readers, with a kill at every step.

The algorithm reads like the native one: `lock`, `repair`, `chunks`, `writer`, `reader`.
`python -m models events.log` searches it.
"""

from models.events.log.campaign import CAMPAIGN
from models.events.log.model import EventsModel
from models.events.log.rules import Configuration

__all__ = ["CAMPAIGN", "Configuration", "EventsModel"]
