"""Which algorithm is searched, and how big the world is.

`slots` is the algorithm.
Every other variant breaks one rule of it, and must be caught.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from models.core.configuration import Configuration as BaseConfiguration
from models.core.configuration import option


@dataclass(frozen=True)
class Rules:
    """The rules of the algorithm; a broken variant switches one off."""

    word_before_head: bool = True
    front_is_checked_again: bool = True
    claims_are_helped: bool = True
    words_have_generations: bool = True
    recovery_scans_used: bool = True
    recovery_scans_free: bool = True
    recovery_passes_heads: bool = True
    passed_cells_do_not_count: bool = True
    taken_items_come_again: bool = True
    tail_is_helped: bool = True
    recovery_compares: bool = True
    claims_are_cut: bool = True
    held_claims_are_cut: bool = True
    cut_comes_before_the_swap: bool = True
    word_is_checked_before_the_cut: bool = True
    intent_is_written_first: bool = True
    undecided_is_waited_for: bool = True
    counted_when_it_is_in: bool = True
    arrival_is_noted_first: bool = True


SLOTS = "slots"

VARIANTS: dict[str, Rules] = {
    SLOTS: Rules(),
    "head-before-word": Rules(word_before_head=False),
    "front-not-checked-again": Rules(front_is_checked_again=False),
    "claims-not-helped": Rules(claims_are_helped=False),
    "no-generations": Rules(words_have_generations=False),
    "arriving-not-searched": Rules(recovery_scans_used=False),
    "leaving-not-searched": Rules(recovery_scans_free=False),
    "heads-not-passed": Rules(recovery_passes_heads=False),
    "passed-cells-count": Rules(passed_cells_do_not_count=False),
    "taken-items-dropped": Rules(taken_items_come_again=False),
    "tail-not-helped": Rules(tail_is_helped=False),
    "recovery-without-compare": Rules(recovery_compares=False),
    "claims-not-cut": Rules(claims_are_cut=False),
    "held-claims-not-cut": Rules(held_claims_are_cut=False),
    "cut-after-swap": Rules(cut_comes_before_the_swap=False),
    "cut-without-check": Rules(word_is_checked_before_the_cut=False),
    "no-intent": Rules(intent_is_written_first=False),
    "undecided-is-in": Rules(undecided_is_waited_for=False),
    "counted-early": Rules(counted_when_it_is_in=False),
    "arrival-noted-late": Rules(arrival_is_noted_first=False),
}


@dataclass(frozen=True)
class Configuration(BaseConfiguration):
    """The size of the world."""

    VARIANTS = VARIANTS

    slots: int = option(1, "how many there are", least=1)
    producers: int = option(1, "participants that put", least=1)
    items: int = option(1, "items of each producer", least=1)
    consumers: int = option(1, "participants that get", least=1)
    overwrites: bool = option(False, "producers evict the oldest item when no slot is free")
    put_once: bool = option(False, "producers are lives of one producer that has a name")
    """Each begins when the one before was killed, and puts the rest."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.put_once and self.overwrites:
            raise ValueError("a named producer does not overwrite: put_once and overwrites")

    @cached_property
    def rules(self) -> Rules:
        return VARIANTS[self.variant]
