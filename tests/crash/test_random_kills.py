"""SIGKILL at random moments under load. What must hold afterwards is the promise of crash safety, word by word.

The module of each kind says what is allowed after kills, and nothing else is.
"""

from __future__ import annotations

import pytest

from tests.crash import events, leases, overwriting, rings, slots
from tests.crash.campaign import KILLS, LONG_KILLS

CAMPAIGNS = {
    "bounded": (rings.Bounded, rings.BOUNDED_LOADS),
    "growing": (rings.Growing, rings.GROWING_LOADS),
    "overwriting": (overwriting.Overwriting, overwriting.LOADS),
    "slots": (slots.Slots, slots.LOADS),
    "events": (events.Events, events.LOADS),
}


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, (_, loads) in CAMPAIGNS.items() for name in loads])
def test_a_queue_keeps_its_promise_after_kills_at_random_moments(children, queue_dir, is_long, kind, name, capsys):
    make, loads = CAMPAIGNS[kind]
    campaign = make(loads[name], children, queue_dir, seed=f"{kind} {name} {is_long}")
    kills = LONG_KILLS if is_long else KILLS
    scheduler_seconds = campaign.run(kills)
    said = campaign.judge()
    with capsys.disabled():
        print(
            f"\n  {kind}, {name}: {kills} kills, {said}; longest call {campaign.longest_seconds() * 1e3:.0f} ms, "
            f"the machine's own {scheduler_seconds * 1e3:.0f} ms"
        )
    campaign.check_stalls(scheduler_seconds, is_long)
    campaign.check_that_all_is_free()
    campaign.check_that_every_line_is_free()


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "make",
    [leases.BoundedLeases, leases.GrowingLeases, leases.SlotLeases, leases.OverwritingLeases],
    ids=lambda make: make.__name__,
)
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long), pytest.param(3, marks=pytest.mark.long)])
def test_every_leased_item_is_noted_or_counted_as_lost(children, queue_dir, is_long, make, seed, capsys):
    campaign = make(children, queue_dir, f"{make.__name__} {seed}", make.long_items if is_long else 60_000)
    kills = 300 if is_long else 30
    campaign.run(kills)
    said = campaign.judge()
    with capsys.disabled():
        print(f"\n  {make.__name__}: {kills} kills, {said}")
    campaign.check_that_all_is_free()
