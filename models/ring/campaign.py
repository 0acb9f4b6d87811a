"""Which configurations of the ledger are searched, and what each must show."""

from __future__ import annotations

from models.core.campaign import Campaign, Case
from models.core.search import STUCK
from models.ring.model import LedgerModel
from models.ring.rules import LEDGER_SCAN_EACH, Configuration
from models.ring.world import CHANGED, DOUBLED, LOST, TORN

# The smallest world that shows each mistake.
BROKEN: tuple[Case[Configuration], ...] = (
    Case(Configuration(variant="plain"), STUCK),
    Case(Configuration(variant="intent-after-claim"), STUCK),
    Case(Configuration(variant="clear-before-publish"), STUCK),
    Case(Configuration(variant="clear-before-release", consumers=2), LOST),
    Case(Configuration(variant="head-first-publish", item_slots=(2,), kills=0), CHANGED),
    Case(Configuration(variant="head-last-release", item_slots=(2,), items=2, consumers=2), TORN),
    Case(Configuration(variant="deliver-before-release", consumers=2), DOUBLED),
    Case(Configuration(variant="no-live-check", producers=2), CHANGED),
    Case(Configuration(variant="scan-before-positions", producers=2), CHANGED),
    Case(Configuration(variant="no-position-check"), STUCK),
    Case(Configuration(variant="no-live-check", capacity=1, producers=2), CHANGED),
    Case(Configuration(variant="tombstone-without-compare", capacity=1, producers=2), CHANGED),
    Case(Configuration(variant="free-under-head", item_slots=(2,), items=2, consumers=2), TORN),
    Case(Configuration(variant="redeliverer-plain-claim", consumers=3), CHANGED),
    Case(
        Configuration(variant="redeliverer-plain-release", item_slots=(2,), items=2, consumers=2),
        CHANGED,
    ),
    Case(
        Configuration(variant="scan-each-plain-release", item_slots=(2,), items=2, consumers=2),
        CHANGED,
    ),
    Case(Configuration(variant="tombstone-without-compare", producers=2), LOST),
    Case(Configuration(variant="end-check-live-only", consumers=2), LOST),
    Case(Configuration(variant="reuse-unrecovered", rejoins=1), STUCK),
    Case(Configuration(variant="reuse-redelivered", consumers=2, kills=2, rejoins=1), STUCK),
    Case(Configuration(variant="redeliver-without-intent", consumers=2, kills=2, rejoins=1), STUCK),
)

# What a crash can meet: each side alone and contended, several laps, items of several slots,
# recoverers that are killed too, and dead lines that are taken over.
SOUND_SHORT: tuple[Case[Configuration], ...] = (
    Case(Configuration(items=3, consumers=1, kills=0)),
    Case(Configuration(items=3, consumers=2)),
    Case(Configuration(producers=2, kills=2)),
    Case(Configuration(items=3, item_slots=(1, 2), consumers=2, kills=2)),
    Case(Configuration(items=2, item_slots=(2,), consumers=2, kills=2)),
    Case(Configuration(capacity=3, items=2, item_slots=(3,), consumers=2)),
    Case(Configuration(capacity=1, items=3, consumers=2)),
    Case(Configuration(capacity=1, producers=2, kills=2)),
    Case(Configuration(capacity=3, items=3, item_slots=(2, 1), consumers=1, kills=2)),
    Case(Configuration(producers=2, item_slots=(2,), kills=2)),
    Case(Configuration(rejoins=1, kills=2)),
    Case(Configuration(rejoins=1, producers=2)),
    Case(Configuration(variant=LEDGER_SCAN_EACH, producers=2, kills=2)),
    Case(Configuration(variant=LEDGER_SCAN_EACH, items=2, item_slots=(2,), consumers=2)),
    Case(Configuration(variant=LEDGER_SCAN_EACH, rejoins=1, kills=2)),
)
SOUND_LONG: tuple[Case[Configuration], ...] = (
    Case(Configuration(producers=2, items=2)),
    Case(Configuration(capacity=1, producers=2, items=2, kills=2)),
    Case(Configuration(capacity=1, items=3, consumers=2, kills=2)),
    Case(Configuration(capacity=1, rejoins=1, items=2, kills=2)),
    Case(Configuration(capacity=3, items=4, item_slots=(2, 1), consumers=2, kills=2)),
    Case(Configuration(items=3, consumers=2, kills=2)),
    Case(Configuration(capacity=4, items=3, item_slots=(2, 1, 3), consumers=2, kills=2)),
    Case(Configuration(producers=2, items=2, item_slots=(2,), kills=2)),
    Case(Configuration(capacity=4, producers=2, items=2, item_slots=(3, 2), kills=2)),
    Case(Configuration(producers=3, kills=3)),
    Case(Configuration(producers=2, consumers=2, kills=2)),
    Case(Configuration(producers=2, item_slots=(2,), consumers=2, kills=2)),
    Case(Configuration(capacity=4, producers=2, item_slots=(2,), consumers=2, kills=2)),
    Case(Configuration(item_slots=(2,), consumers=3, kills=3)),
    Case(Configuration(items=2, item_slots=(2,), consumers=3, kills=2)),
    Case(Configuration(rejoins=1, producers=2, kills=2)),
    Case(Configuration(rejoins=1, producers=2, item_slots=(2,))),
    Case(Configuration(rejoins=1, item_slots=(2,), consumers=2, kills=3)),
    Case(Configuration(rejoins=1, items=2, item_slots=(2,), consumers=2, kills=2)),
    Case(Configuration(rejoins=1, producers=2, consumers=2)),
    Case(Configuration(variant=LEDGER_SCAN_EACH, producers=2, consumers=2, kills=2)),
    Case(Configuration(variant=LEDGER_SCAN_EACH, item_slots=(2,), consumers=3, kills=2)),
    Case(Configuration(variant=LEDGER_SCAN_EACH, rejoins=1, consumers=2, kills=2)),
)

CAMPAIGN = Campaign(LedgerModel, Configuration, SOUND_SHORT, BROKEN, SOUND_LONG)
