"""The native crash campaigns: SIGKILL and SIGSTOP at every failpoint of every operation, then pairs of them.

The rules are in tests/native/crash: what is in comes out exactly once, what is not in never does, nothing is torn,
no slot and no line of the participant table leaks, the living are left alone, and survivors go on within 250 ms.
Of a named producer that is started again, every item comes out exactly once. What is in an event queue is read by all
at the same position, and a dead writer's lock and memory are had again. What an overwriting queue has counted is what
each process noted before it died, to the unit. Of a slot queue every slot can be lent again.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "build" / "native" / "tests" / "native"


@dataclass(frozen=True)
class Campaign:
    """What the short form of a program must play, and what it must notice."""

    headers: tuple[str, ...]  # in native/, without .hpp: a kill must have come at each of their failpoints
    cases: int
    kills: int
    stops: int
    sabotages: dict[str, str]  # ways to break the users of a queue, each with a group that has to notice it
    not_reached: frozenset[str] = frozenset()  # failpoints of steps that this queue does not take

    def failpoints(self) -> set[str]:
        files = [path for header in self.headers for path in (ROOT / "native").glob(f"{header}.hpp")]
        named = r'"([a-z_]+\.(?!hpp")[a-z_]+)"'
        return {point for path in files for point in re.findall(named, path.read_text())} - self.not_reached


CAMPAIGNS = {
    "crash_bounded": Campaign(
        headers=("ring/*", "bounded/*", "segment/participants", "segment/event", "segment/lease_line"),
        cases=10_000,
        kills=15_000,
        stops=3_000,
        sabotages={
            "silent_producer": "single",
            "silent_consumer": "single",
            "unlocked": "stop",
            "head_first": "single",
            "impatient": "stop",
            "forgetful": "pair",
            "helpless": "asleep",
            "early_end": "stop",
        },
        not_reached=frozenset({"once.before_cut", "once.cut"}),  # crash_put_once does
    ),
    "crash_put_once": Campaign(
        headers=("ring/ring", "ring/items", "ring/ledger", "ring/put_once", "segment/owner", "segment/producers"),
        cases=3_000,
        kills=3_000,
        stops=2_000,
        sabotages={
            "late_confirm": "alone",
            "early_complete": "again",
            "uncut": "alone",
            "hasty": "alone",
            "fresh": "replaced",
        },
    ),
    "crash_events": Campaign(
        headers=(
            "events/*",
            *(f"segment/{name}" for name in ("owner", "robust_lock", "producers", "participants", "event")),
        ),
        cases=9_000,
        kills=11_000,
        stops=2_000,
        sabotages={
            "unlocked": "stop",
            "unrepaired": "single",
            "forgetful": "single",
            "early": "single",
            "unsettled": "single",
            "unintended": "single",
            "early_count": "single",
        },
        # under the lock there is nothing to claim; only slot queues clear all dead lines at once (clear_all_settled)
        not_reached=frozenset({"once.before_confirm", "once.confirmed", "recover.found_dead"}),
    ),
    "crash_overwriting": Campaign(
        headers=("overwriting/*", "segment/participants", "segment/event", "segment/lease_line"),
        cases=6_000,
        kills=9_000,
        stops=2_500,
        sabotages={
            "unlocked": "stop",
            "unmade": "single",
            "early": "single",
            "trusting": "stop",
            "early_end": "single",
        },
        # no participant declares an intent, and only slot queues clear all dead lines at once
        not_reached=frozenset({"participants.before_clear", "participants.cleared", "recover.found_dead"}),
    ),
    "crash_slots": Campaign(
        headers=("slots/*", "segment/participants", "segment/event"),
        cases=8_000,
        kills=12_000,
        stops=4_000,
        sabotages={"unlocked": "stop", "forgetful": "pair", "nameless": "pair", "unwritten": "single"},
        # a lease has no line of its own, and a thread's goes with its process here: crash_bounded lets lines go
        not_reached=frozenset({"participants.before_let_go", "participants.let_go", "once.before_cut", "once.cut"}),
    ),
    "crash_growing": Campaign(
        headers=("growing/*", "ring/*", "segment/robust_lock", "segment/lease_line"),
        cases=9_000,
        kills=14_000,
        stops=1_100,
        sabotages={"silent": "single", "blind": "single", "early_end": "stop", "fresh": "single"},
    ),
    "crash_slots_put_once": Campaign(
        headers=("slots/put_once", "segment/owner", "segment/producers"),
        cases=1_400,
        kills=2_000,
        stops=1_500,
        sabotages={
            "uncut": "alone",
            "unintended": "again",
            "early_count": "late",
            "hasty": "alone",
            "fresh": "replaced",
        },
        not_reached=frozenset({"once.before_confirm", "once.confirmed"}),  # there is nothing to claim but the slot
    ),
}

SABOTAGES = [(name, way, group) for name, each in CAMPAIGNS.items() for way, group in each.sabotages.items()]

# What a broken protocol of producers leads to: other complaints about it would be about something else.
# An item that is put twice is taken twice, each time as one that was never delivered before: miscounted.
PRODUCERS_FAULTS = ("lost", "twice", "order", "miscounted")
PRODUCERS_SABOTAGES = {
    *CAMPAIGNS["crash_put_once"].sabotages,
    *CAMPAIGNS["crash_slots_put_once"].sabotages,
    "unsettled",
    "unintended",
    "early_count",
}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def built(name: str) -> Path:
    """The built campaign; built here if it is not there yet."""
    if not (BUILT / name).exists():
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        subprocess.run([ROOT / "tools" / "native.sh", "plain"], check=True, env={**os.environ, "PATH": path})
    return BUILT / name


def play(name: str, *options: str) -> tuple[int, dict]:
    done = subprocess.run([built(name), "--json", *options], capture_output=True, text=True, timeout=550)
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_a_kill_at_every_failpoint_leaves_everything_in_order(name):
    campaign = CAMPAIGNS[name]
    status, totals = play(name)
    assert totals["failed"] == []
    assert status == 0
    assert totals["cases"] > campaign.cases
    assert totals["kills"] > campaign.kills
    assert totals["stops"] > campaign.stops
    # a failpoint of the headers that nothing was killed at is one that no operation of the campaign reaches
    assert campaign.failpoints() - set(totals["points"]) == set()


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_the_failpoints_of_a_campaign_are_found(name):
    assert len(CAMPAIGNS[name].failpoints()) > 15


@pytest.mark.parametrize(("name", "way", "group"), SABOTAGES, ids=[f"{name}-{way}" for name, way, _ in SABOTAGES])
def test_the_campaign_notices_a_queue_that_is_used_wrongly(name, way, group):
    status, totals = play(name, "--sabotage", way, "--filter", f"{group}/")
    assert status != 0
    assert totals["failed"]
    if way in PRODUCERS_SABOTAGES:
        assert any(fault in problem for problem in totals["failed"] for fault in PRODUCERS_FAULTS)


def test_a_failed_case_is_played_again_by_its_name():
    campaign = "crash_bounded"
    _, totals = play(campaign, "--sabotage", "silent_producer", "--filter", "single/")
    name = totals["failed"][0].split(": ")[0]
    status, again = play(campaign, "--sabotage", "silent_producer", "--filter", name)
    assert status != 0
    assert again["cases"] == 1
    status, right = play(campaign, "--long", "--filter", name)  # the short form varies the survivors
    assert status == 0
    assert right["cases"] == 1
