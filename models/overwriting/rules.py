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
    """The rules of the algorithm; a broken variant switches one off."""

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
    reader_checks_last: bool = True
    reader_ends_in_one_store: bool = True
    non_overwriting_put_spares_readers: bool = True
    cell_is_in_the_change: bool = True
    cell_named_before_taken: bool = True
    cell_ends_by_one_change: bool = True
    copied_before_held: bool = True
    holder_must_be_dead: bool = True


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
    "read-without-last-check": Rules(reader_checks_last=False),
    "count-after-end": Rules(reader_ends_in_one_store=False),
    "non-overwriting-put-takes-from-reader": Rules(non_overwriting_put_spares_readers=False),
    "cell-named-later": Rules(cell_is_in_the_change=False),
    "ring-before-cell": Rules(cell_named_before_taken=False),
    "cell-freed-before-counted": Rules(cell_ends_by_one_change=False),
    "hold-before-copy": Rules(copied_before_held=False),
    "take-from-living-holder": Rules(holder_must_be_dead=False),
}


@dataclass(frozen=True)
class Configuration(BaseConfiguration):
    """The size of the world: each process has a program of operations in turn.

    p puts, k puts and overwrites nothing, g gets, l leases one message and releases it.
    A newcomer, if any, takes the line of a dead process.
    """

    VARIANTS = VARIANTS

    programs: tuple[str, ...] = option(
        ("p", "g"),
        "a process's operations in turn: p puts, k puts and overwrites nothing, g gets, l leases",
        metavar="OPERATIONS",
    )
    newcomer: str = option("", "what the new owner of a dead line does", metavar="OPERATIONS")
    capacity: int = option(1, "messages of the ring", least=1)
    cells: int = option(1, "cells for leased messages", least=1)

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
