"""The native crash campaigns: SIGKILL and SIGSTOP at every failpoint of every operation, then pairs of them.

The rules are in tests/native/crash: what is in comes out exactly once (of events: is read by everybody at its
position), what is not in never does, nothing is torn, nothing leaks, the living are left alone, and survivors go on
within 250 ms.
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
NATIVE = ROOT / "native"


@dataclass(frozen=True)
class Campaign:
    """One queue's campaign: its program, and what a run of it must have reached."""

    program: str
    headers: tuple[str, ...]  # patterns: a failpoint that one of them names must have been a place to die
    cases: int
    kills: int
    stops: int
    # ways to break the users of a queue that a campaign worth its time must notice, each with a group that has to
    sabotages: dict[str, str]

    @property
    def path(self) -> Path:
        return ROOT / "build" / "native" / "tests" / "native" / self.program

    def failpoints(self) -> set[str]:
        texts = [path.read_text() for pattern in self.headers for path in NATIVE.glob(pattern)]
        return {point for text in texts for point in re.findall(r'"([a-z]+\.(?!hpp")[a-z_]+)"', text)}


BOUNDED = Campaign(
    program="crash_bounded",
    headers=("ledger.hpp", "roster.hpp", "wait.hpp", "bounded*.hpp"),
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
    },
)
EVENTS = Campaign(
    program="crash_events",
    headers=("owner_lock.hpp", "roster.hpp", "wait.hpp", "events*.hpp"),
    cases=6_000,
    kills=7_000,
    stops=1_500,
    sabotages={"unlocked": "stop", "unrepaired": "single", "forgetful": "single", "early": "stop"},
)
CAMPAIGNS = [BOUNDED, EVENTS]
SABOTAGES = [(campaign, way, group) for campaign in CAMPAIGNS for way, group in campaign.sabotages.items()]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    """The campaigns' programs; built here if they are not there yet."""
    if not all(campaign.path.exists() for campaign in CAMPAIGNS):
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        subprocess.run([ROOT / "tools" / "native.sh", "plain"], check=True, env={**os.environ, "PATH": path})


def play(campaign: Campaign, *options: str) -> tuple[int, dict]:
    done = subprocess.run([campaign.path, "--json", *options], capture_output=True, text=True, timeout=300)
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize("campaign", CAMPAIGNS, ids=lambda campaign: campaign.program)
def test_a_kill_at_every_failpoint_leaves_everything_in_order(campaign):
    status, totals = play(campaign)
    assert totals["failed"] == []
    assert status == 0
    assert totals["cases"] > campaign.cases
    assert totals["kills"] > campaign.kills
    assert totals["stops"] > campaign.stops
    # a failpoint of the headers that nothing was killed at is one that no operation of the campaign reaches
    assert sorted(totals["points"]) == sorted(campaign.failpoints())


@pytest.mark.parametrize(
    ("campaign", "way", "group"), SABOTAGES, ids=[f"{campaign.program}-{way}" for campaign, way, _ in SABOTAGES]
)
def test_the_campaign_notices_a_queue_that_is_used_wrongly(campaign, way, group):
    status, totals = play(campaign, "--sabotage", way, "--filter", f"{group}/")
    assert status != 0
    assert totals["failed"]


@pytest.mark.parametrize(
    ("campaign", "way"), [(BOUNDED, "silent_producer"), (EVENTS, "unrepaired")], ids=["bounded", "events"]
)
def test_a_failed_case_is_played_again_by_its_name(campaign, way):
    _, totals = play(campaign, "--sabotage", way, "--filter", "single/")
    name = totals["failed"][0].split(": ")[0]
    status, again = play(campaign, "--sabotage", way, "--filter", name)
    assert status != 0
    assert again["cases"] == 1
    status, right = play(campaign, "--long", "--filter", name)  # the short form varies the survivors
    assert status == 0
    assert right["cases"] == 1
