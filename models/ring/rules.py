"""Which algorithm is searched, and how big the world is.

`ledger` is the algorithm, and `ledger-scan-each` scans for live lines again for each position.
Every other variant breaks one rule of one of them.
A search that cannot fail proves nothing: each broken variant must be caught.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from models.core.configuration import Configuration as BaseConfiguration
from models.core.configuration import option
from models.ring.words import LINES_MAX

# Far more than a search can reach; it bounds the bit sets of recoverers.
POSITIONS_MAX = 64


@dataclass(frozen=True)
class Rules:
    """The rules of the algorithm; a broken variant switches one off."""

    live_lines_scanned_for_each_position: bool = False
    intents_are_kept: bool = True
    intent_before_claim: bool = True
    intent_cleared_after_publish: bool = True
    intent_cleared_after_release: bool = True
    head_published_last: bool = True
    head_released_first: bool = True
    delivered_by_release: bool = True
    live_lines_are_respected: bool = True
    positions_read_before_scan: bool = True
    only_claimed_positions: bool = True
    continuations_go_with_head: bool = True
    redeliverer_stores_intent: bool = True
    redeliverer_compares_on_claim: bool = True
    redeliverer_compares_on_release: bool = True
    recoverer_compares_on_tombstone: bool = True
    reuse_checks_positions: bool = True
    reuse_checks_redelivered: bool = True
    end_check_counts_the_dead: bool = True

    def first_release(self, count: int) -> int:
        """The offset of the slot that a popper releases first."""
        return 0 if self.head_released_first else 1 % count

    def following_release(self, count: int, offset: int) -> int | None:
        following = (offset + 1) % count
        return None if following == self.first_release(count) else following


LEDGER = "ledger"
LEDGER_SCAN_EACH = "ledger-scan-each"
SOUND = (LEDGER, LEDGER_SCAN_EACH)

VARIANTS: dict[str, Rules] = {
    LEDGER: Rules(),
    LEDGER_SCAN_EACH: Rules(live_lines_scanned_for_each_position=True),
    "plain": Rules(intents_are_kept=False),
    "intent-after-claim": Rules(intent_before_claim=False),
    "clear-before-publish": Rules(intent_cleared_after_publish=False),
    "clear-before-release": Rules(intent_cleared_after_release=False),
    "head-first-publish": Rules(head_published_last=False),
    "head-last-release": Rules(head_released_first=False),
    "deliver-before-release": Rules(delivered_by_release=False),
    "no-live-check": Rules(live_lines_are_respected=False),
    "scan-before-positions": Rules(positions_read_before_scan=False),
    "no-position-check": Rules(only_claimed_positions=False),
    "free-under-head": Rules(continuations_go_with_head=False),
    "redeliver-without-intent": Rules(redeliverer_stores_intent=False),
    "redeliverer-plain-claim": Rules(redeliverer_compares_on_claim=False),
    "redeliverer-plain-release": Rules(redeliverer_compares_on_release=False),
    "scan-each-plain-release": Rules(
        live_lines_scanned_for_each_position=True,
        redeliverer_compares_on_release=False,
    ),
    "tombstone-without-compare": Rules(recoverer_compares_on_tombstone=False),
    "reuse-unrecovered": Rules(reuse_checks_positions=False),
    "reuse-redelivered": Rules(reuse_checks_redelivered=False),
    "end-check-live-only": Rules(end_check_counts_the_dead=False),
}


@dataclass(frozen=True)
class Configuration(BaseConfiguration):
    """The size of the world.

    Lines 0 … producers-1 put `items` items each, the other lines get.
    Item n of a producer has `item_slots[n % len(item_slots)]` slots.
    `is_exact` keeps the steps of recoveries that cannot change anything.
    """

    VARIANTS = VARIANTS

    capacity: int = option(2, "slots of the ring", least=1)
    producers: int = option(1, "participants that put", least=1)
    items: int = option(1, "items of each producer", least=1)
    consumers: int = option(1, "participants that get", least=1)
    kills: int = option(1, "how many participants may be killed", least=0)
    item_slots: tuple[int, ...] = option((1,), "slots of the items, in turn", least=1)
    rejoins: int = option(0, "1 if a newcomer may take over a dead line", least=0)
    is_exact: bool = option(False, "keep the steps of recoveries that cannot change anything")

    def __post_init__(self) -> None:
        super().__post_init__()
        # A second newcomer would need item numbers that outlive a first one's retries.
        if self.rejoins > 1:
            raise ValueError(f"rejoins must be 0 or 1: rejoins={self.rejoins}")
        if self.lines > LINES_MAX:
            raise ValueError(f"at most {LINES_MAX} participants: {self.lines}")
        if not self.item_slots or max(self.item_slots) > self.capacity:
            sizes = f"item_slots={self.item_slots}, capacity={self.capacity}"
            raise ValueError(f"an item must have from 1 to capacity slots: {sizes}")
        positions = sum(map(self.slots_of, range((self.producers + self.rejoins) * self.items)))
        if positions > POSITIONS_MAX:
            raise ValueError(f"at most {POSITIONS_MAX} slots may be put: {positions}; put less")

    @property
    def is_sound(self) -> bool:
        return self.variant in SOUND

    @property
    def lines(self) -> int:
        return self.producers + self.consumers

    @cached_property
    def rules(self) -> Rules:
        return VARIANTS[self.variant]

    def first_item(self, producer: int) -> int:
        """Items are numbered: those of producer 0, of producer 1, …, then of the newcomer."""
        return producer * self.items

    def is_last(self, item: int) -> bool:
        return (item + 1) % self.items == 0

    def slots_of(self, item: int) -> int:
        return self.item_slots[item % self.items % len(self.item_slots)]
