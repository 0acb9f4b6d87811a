"""Which configurations of the log are searched, and what each must show."""

from __future__ import annotations

from models.campaign import Campaign, Case
from models.events_log.model import EventsModel
from models.events_log.rules import Configuration

BROKEN: tuple[Case[Configuration], ...] = ()
SOUND_SHORT: tuple[Case[Configuration], ...] = ()
SOUND_LONG: tuple[Case[Configuration], ...] = ()

CAMPAIGN = Campaign(EventsModel, SOUND_SHORT, BROKEN, SOUND_LONG)
