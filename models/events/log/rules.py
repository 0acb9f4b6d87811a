"""Which algorithm is searched, and how big the world is.

`log` is the algorithm. Every other variant breaks one of its rules, and must be caught.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from models.core.configuration import Configuration as BaseConfiguration
from models.core.configuration import option
from models.events.log.memory import DURABLE, EPHEMERAL

# What a reader does: two kinds are registered from the start, three subscribe, and one reads by position and is not
# registered.
EARLIEST, LATEST, NAMED, UNREGISTERED = "earliest", "latest", "named", "unregistered"
READER_ROLES = (EPHEMERAL, DURABLE, EARLIEST, LATEST, NAMED, UNREGISTERED)
CLEAR, KEEP_LAST = "c", "k"
# How many items each operation puts, and how long they are.
OPERATIONS = {"1": (1, 0), "2": (2, 0), "l": (1, 1), "x": (1, 2), CLEAR: (0, 0), KEEP_LAST: (0, 0)}
PROCESSES_MAX = 6


@dataclass(frozen=True)
class Rules:
    """The rules of the algorithm; a broken variant switches one off."""

    lock_has_sequence: bool = True
    line_is_orphaned_before_reuse: bool = True
    dead_owner_is_replaced: bool = True
    taker_repairs: bool = True
    orphan_is_repaired: bool = True
    repair_finishes_clear: bool = True
    repair_cuts_chunks_to_end: bool = True
    repair_unmakes_empty_chunk: bool = True
    repair_forgets_blocks: bool = True
    head_moved_before_free: bool = True
    items_before_end: bool = True
    described_before_made: bool = True
    one_line_stays_spare: bool = True
    start_before_end: bool = True
    places_hold_chunks: bool = True
    dropped_before_freed: bool = True
    place_moves_after_copy: bool = True
    idle_reader_moves: bool = True
    durable_place_is_committed: bool = True
    copy_is_validated: bool = True
    position_read_is_validated: bool = True
    jump_stays_before_end: bool = True
    search_is_repeated: bool = True
    kind_stored_last: bool = True
    subscribed_under_lock: bool = True
    dead_readers_are_released: bool = True
    place_of_the_dead_is_read_again: bool = True


LOG = "log"

VARIANTS: dict[str, Rules] = {
    LOG: Rules(),
    "no-sequence": Rules(lock_has_sequence=False),
    "no-orphan": Rules(line_is_orphaned_before_reuse=False),
    "no-take-over": Rules(dead_owner_is_replaced=False),
    "no-repair": Rules(taker_repairs=False),
    "orphan-taken-as-free": Rules(orphan_is_repaired=False),
    "repair-leaves-clear": Rules(repair_finishes_clear=False),
    "repair-leaves-chunks-beyond-end": Rules(repair_cuts_chunks_to_end=False),
    "repair-leaves-empty-chunk": Rules(repair_unmakes_empty_chunk=False),
    "repair-keeps-blocks": Rules(repair_forgets_blocks=False),
    "free-before-head": Rules(head_moved_before_free=False),
    "end-before-items": Rules(items_before_end=False),
    "made-before-described": Rules(described_before_made=False),
    "no-spare-line": Rules(one_line_stays_spare=False),
    "clear-end-first": Rules(start_before_end=False),
    "free-under-readers": Rules(places_hold_chunks=False),
    "free-before-drop": Rules(dropped_before_freed=False),
    "move-before-copy": Rules(place_moves_after_copy=False),
    "idle-reader-stays": Rules(idle_reader_moves=False),
    "durable-place-follows": Rules(durable_place_is_committed=False),
    "copy-without-validation": Rules(copy_is_validated=False),
    "position-read-without-validation": Rules(position_read_is_validated=False),
    "jump-beyond-end": Rules(jump_stays_before_end=False),
    "search-once": Rules(search_is_repeated=False),
    "kind-first": Rules(kind_stored_last=False),
    "subscribe-without-lock": Rules(subscribed_under_lock=False),
    "dead-readers-stay": Rules(dead_readers_are_released=False),
    "released-by-an-old-read": Rules(place_of_the_dead_is_read_again=False),
}


@dataclass(frozen=True)
class Configuration(BaseConfiguration):
    """The size of the world.

    Lines 0 … are the writers, each with its operations in turn: 1 and 2 put so many items at once,
    l and x put a long item and a longer one, each of which needs a chunk made for it or for a
    longer one, c clears, k keeps the last item. Then come the readers; with
    `short_sessions` each of them begins a session for every item. A newcomer, if any, takes a dead line.
    """

    VARIANTS = VARIANTS

    writers: tuple[str, ...] = option(
        ("1",),
        "a writer's operations in turn: 1, 2 put so many items, l, x a long one, c clears, k keeps the last",
        metavar="OPERATIONS",
    )
    readers: tuple[str, ...] = option(
        (EPHEMERAL,), f"what readers there are, of {', '.join(READER_ROLES)}", metavar="ROLE"
    )
    newcomer: str = option("", "what the new owner of a dead line does", metavar="OPERATIONS")
    chunk_items: int = option(1, "items of a chunk", least=1)
    chunk_lines: int = option(4, "lines of the directory", least=2)
    blocks: int = option(2, "chunks that there is memory for", least=1)
    may_drop: bool = option(False, "a full log drops its slowest reader")
    short_sessions: bool = option(False, "a reader gets one item a session")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.writers or len(self.writers) + len(self.readers) > PROCESSES_MAX:
            raise ValueError(f"1 writer or more, and at most {PROCESSES_MAX} participants: {self}")
        for program in (*self.writers, self.newcomer):
            if set(program) - set(OPERATIONS):
                raise ValueError(f"a writer's operations are {', '.join(OPERATIONS)}: {program!r}")
        for role in self.readers:
            if role not in READER_ROLES:
                raise ValueError(f"no such reader: {role!r}; try {', '.join(READER_ROLES)}")
        if sum(role in (DURABLE, NAMED) for role in self.readers) > 1:
            raise ValueError(f"at most one durable reader: readers={self.readers}")

    @property
    def processes(self) -> int:
        return len(self.writers) + len(self.readers)

    @cached_property
    def rules(self) -> Rules:
        return VARIANTS[self.variant]

    @cached_property
    def programs(self) -> tuple[str, ...]:
        """By author: the writers, and last the newcomer, whatever line it takes."""
        return (*self.writers, self.newcomer)

    def item(self, author: int, operation: int, done: int) -> int:
        """A number of its own for every item."""
        before = sum(OPERATIONS[name][0] for name in self.programs[author][:operation])
        return 10 * author + before + done
