"""What the algorithm does at its decisive points, the variants that do otherwise, and the size of the world."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from models.core.configuration import Configuration as BaseConfiguration
from models.core.configuration import option

PROCESSES_MAX = 4
OPERATIONS = "pkgl"


@dataclass(frozen=True)
class Rules:
    """Each is true of the algorithm; each variant breaks one."""

    dead_owner_is_replaced: bool = True
    word_has_tenure: bool = True
    taker_settles: bool = True
    committed_before_made: bool = True
    written_before_committed: bool = True
    journal_is_absolute: bool = True
    copied_before_published: bool = True
    living_writer_is_waited_for: bool = True
    dead_writer_is_torn: bool = True
    lock_of_the_dead_is_read_again: bool = True
    reader_looks_last: bool = True
    reader_ends_in_one_store: bool = True
    keeper_spares_readers: bool = True
    place_is_in_the_change: bool = True
    place_ends_by_one_change: bool = True
    copied_before_kept: bool = True
    keeper_is_asked_for: bool = True


RING = "ring"

VARIANTS: dict[str, Rules] = {
    RING: Rules(),
    "no-take-over": Rules(dead_owner_is_replaced=False),
    "no-tenure": Rules(word_has_tenure=False),
    "no-settle": Rules(taker_settles=False),
    "no-commit": Rules(committed_before_made=False),
    "commit-before-written": Rules(written_before_committed=False),
    "journal-of-increments": Rules(journal_is_absolute=False),
    "publish-before-copy": Rules(copied_before_published=False),
    "take-from-living-writer": Rules(living_writer_is_waited_for=False),
    "dead-writer-taken-as-done": Rules(dead_writer_is_torn=False),
    "lock-of-the-dead-read-once": Rules(lock_of_the_dead_is_read_again=False),
    "read-without-last-look": Rules(reader_looks_last=False),
    "count-after-end": Rules(reader_ends_in_one_store=False),
    "keeper-takes-from-reader": Rules(keeper_spares_readers=False),
    "place-named-later": Rules(place_is_in_the_change=False),
    "place-freed-before-counted": Rules(place_ends_by_one_change=False),
    "keep-before-copy": Rules(copied_before_kept=False),
    "take-from-living-keeper": Rules(keeper_is_asked_for=False),
}


@dataclass(frozen=True)
class Configuration(BaseConfiguration):
    """The size of the world: each process has a program of operations in turn.

    p puts, k puts and overwrites nothing, g gets, l leases one and releases it. A newcomer, if any, takes the line of
    somebody dead.
    """

    VARIANTS = VARIANTS

    programs: tuple[str, ...] = option(
        ("p", "g"),
        "a process's operations in turn: p puts, k puts and overwrites nothing, g gets, l leases",
        metavar="OPERATIONS",
    )
    newcomer: str = option("", "what the new owner of a dead line does", metavar="OPERATIONS")
    capacity: int = option(1, "messages of the ring", least=1)
    places: int = option(1, "of the shelf, where leased messages are", least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= len(self.programs) <= PROCESSES_MAX:
            raise ValueError(f"1 process or more, and at most {PROCESSES_MAX}: programs={self.programs}")
        for program in (*self.programs, self.newcomer):
            if set(program) - set(OPERATIONS):
                raise ValueError(f"operations are {', '.join(OPERATIONS)}: {program!r}")

    @cached_property
    def has_leases(self) -> bool:
        return any("l" in program for program in (*self.programs, self.newcomer))

    @cached_property
    def rules(self) -> Rules:
        return VARIANTS[self.variant]
