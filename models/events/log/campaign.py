"""Which configurations of the log are searched, and what each must show."""

from __future__ import annotations

from models.core.campaign import Campaign, Case
from models.core.search import STUCK
from models.events.log.memory import DURABLE, EPHEMERAL
from models.events.log.model import EventsModel
from models.events.log.rules import EARLIEST, LATEST, NAMED, UNREGISTERED, Configuration
from models.events.log.world import CORRUPT, LEAKED, LOST, REPEATED, SHARED, TORN, UNCLEARED, UNFINISHED

# The smallest world that shows each mistake.
BROKEN: tuple[Case[Configuration], ...] = (
    Case(Configuration(variant="no-sequence", writers=("1", "1"), newcomer="1", kills=1), SHARED),
    Case(Configuration(variant="no-orphan", writers=("1", "1"), newcomer="1", kills=1), STUCK),
    Case(Configuration(variant="no-take-over", writers=("1", "1"), kills=1), STUCK),
    Case(Configuration(variant="no-repair", writers=("1", "1"), kills=1), LEAKED),
    Case(Configuration(variant="orphan-taken-as-free", newcomer="1", kills=1), LEAKED),
    Case(Configuration(variant="repair-leaves-clear", writers=("1c", "1"), kills=1), UNFINISHED),
    Case(
        Configuration(variant="repair-leaves-chunks-beyond-end", writers=("12", "1"), chunk_items=2, kills=1), CORRUPT
    ),
    Case(
        Configuration(variant="repair-leaves-empty-chunk", writers=("1l", "xx"), chunk_items=2, chunk_lines=3, kills=1),
        TORN,
    ),
    Case(Configuration(variant="repair-keeps-blocks", writers=("1", "1"), kills=1), LEAKED),
    Case(
        Configuration(variant="free-before-head", writers=("11",), readers=(UNREGISTERED,), blocks=1, may_drop=True),
        TORN,
    ),
    Case(Configuration(variant="end-before-items"), TORN),
    Case(Configuration(variant="made-before-described", writers=("1c1",)), CORRUPT),
    Case(Configuration(variant="no-spare-line", writers=("111",), chunk_lines=2), CORRUPT),
    Case(Configuration(variant="clear-end-first", writers=("1c", "1c"), blocks=1, kills=1), UNCLEARED),
    Case(Configuration(variant="free-under-readers", writers=("11",), blocks=1), CORRUPT),
    Case(Configuration(variant="free-before-drop", writers=("11",), blocks=1, may_drop=True), CORRUPT),
    Case(Configuration(variant="move-before-copy", writers=("11",), blocks=1), TORN),
    Case(Configuration(variant="idle-reader-stays", writers=("11",), blocks=1), STUCK),
    Case(Configuration(variant="durable-place-follows", writers=("2",), readers=(DURABLE,), kills=1), LOST),
    Case(Configuration(variant="copy-without-validation", writers=("11",), blocks=1, may_drop=True), TORN),
    Case(
        Configuration(
            variant="position-read-without-validation",
            writers=("11",),
            readers=(UNREGISTERED,),
            blocks=1,
            may_drop=True,
        ),
        TORN,
    ),
    Case(Configuration(variant="jump-beyond-end", writers=("1c1c",)), CORRUPT),
    Case(Configuration(variant="search-once", writers=("111",), readers=(EPHEMERAL, LATEST), chunk_lines=3), CORRUPT),
    Case(Configuration(variant="kind-first", writers=("11",), readers=(NAMED,), blocks=1, kills=1), STUCK),
    Case(
        Configuration(variant="subscribe-without-lock", writers=("11",), readers=(EPHEMERAL, EARLIEST), blocks=1),
        CORRUPT,
    ),
    Case(
        Configuration(variant="dead-readers-stay", writers=("11",), readers=(EPHEMERAL, EPHEMERAL), blocks=1, kills=1),
        STUCK,
    ),
    Case(Configuration(variant="released-by-an-old-read", writers=("2k",), readers=(DURABLE,), kills=1), REPEATED),
)

# Each operation and each kind of reader, alone and together with others, with kills of all of them, also in mid-repair,
# and with lines that get new owners.
SOUND_SHORT: tuple[Case[Configuration], ...] = (
    Case(Configuration(writers=("1111",), blocks=1)),
    Case(Configuration(writers=("11", "1"), blocks=1, kills=2)),
    Case(Configuration(writers=("12", "1"), chunk_items=2, kills=2)),
    Case(Configuration(writers=("1", "1"), newcomer="1", kills=2)),
    Case(Configuration(writers=("1c", "1c"), blocks=1, kills=2)),
    Case(Configuration(writers=("2k", "1"), kills=1)),
    Case(Configuration(writers=("1c1c",), readers=(EPHEMERAL, EPHEMERAL), blocks=1)),
    Case(Configuration(writers=("2c2",), chunk_items=2, kills=1, short_sessions=True)),
    Case(Configuration(writers=("1l", "xx"), chunk_items=2, chunk_lines=3, kills=1)),
    Case(Configuration(writers=("111",), readers=(EPHEMERAL, LATEST), chunk_lines=3)),
    Case(Configuration(writers=("11",), readers=(EPHEMERAL, EARLIEST), blocks=1, kills=1)),
    Case(Configuration(writers=("11",), readers=(EPHEMERAL, EPHEMERAL), blocks=1, kills=2)),
    Case(Configuration(writers=("11", "1"), readers=(DURABLE,), blocks=1, kills=2)),
    Case(Configuration(writers=("1c1",), readers=(DURABLE,), kills=2)),
    Case(Configuration(writers=("2k",), readers=(DURABLE,), kills=2)),
    Case(Configuration(writers=("11",), readers=(NAMED,), blocks=1, kills=2)),
    Case(Configuration(writers=("11", "2"), blocks=1, may_drop=True, kills=1)),
    Case(Configuration(writers=("2", "1"), readers=(DURABLE,), may_drop=True, kills=2)),
    Case(Configuration(writers=("11", "1"), readers=(UNREGISTERED,), blocks=1, may_drop=True, kills=2)),
    Case(Configuration(writers=("11",), readers=(EPHEMERAL, UNREGISTERED), blocks=1, kills=1)),
)
SOUND_LONG: tuple[Case[Configuration], ...] = (
    Case(Configuration(writers=("111", "11"), kills=2)),
    Case(Configuration(writers=("21", "c"), newcomer="2", chunk_items=2, kills=3)),
    Case(Configuration(writers=("1", "1", "1"), newcomer="1", kills=2)),
    Case(Configuration(writers=("1l", "xxx"), chunk_items=2, blocks=3, kills=2)),
    Case(Configuration(writers=("1c1c", "1k"), readers=(EPHEMERAL,), kills=1)),
    Case(Configuration(writers=("2k", "2c"), readers=(DURABLE,), chunk_items=2, kills=2, short_sessions=True)),
    Case(Configuration(writers=("22", "1"), chunk_items=2, blocks=1, may_drop=True, kills=2, short_sessions=True)),
    Case(Configuration(writers=("1111",), readers=(EPHEMERAL, LATEST), blocks=3)),
    Case(Configuration(writers=("11", "1"), readers=(EPHEMERAL, EARLIEST), blocks=1, kills=2)),
    Case(Configuration(writers=("11", "1"), readers=(EPHEMERAL, DURABLE), blocks=1, kills=2)),
    Case(Configuration(writers=("1c", "1"), readers=(EPHEMERAL, DURABLE), newcomer="1", kills=1)),
    Case(Configuration(writers=("11", "1"), readers=(NAMED, EARLIEST), blocks=1, kills=1)),
    Case(Configuration(writers=("111", "11"), chunk_lines=3, may_drop=True, kills=2)),
    Case(
        Configuration(
            writers=("22", "1"), readers=(EPHEMERAL, UNREGISTERED), chunk_items=2, blocks=1, may_drop=True, kills=1
        )
    ),
    Case(Configuration(writers=("11",), readers=(EPHEMERAL, DURABLE), may_drop=True, kills=1)),
)

CAMPAIGN = Campaign(EventsModel, Configuration, SOUND_SHORT, BROKEN, SOUND_LONG)
