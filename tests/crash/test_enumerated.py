"""The native crash campaigns: SIGKILL and SIGSTOP at every failpoint of every operation, then pairs of them.

The rules are in tests/native/crash: what is in comes out exactly once, what is not in never does, nothing is torn,
no slot and no line of the participant table leaks, the living are left alone, and survivors go on within 250 ms.
Of a named producer that is started again, every item comes out exactly once.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "build" / "native" / "tests" / "native"

# Ways to break the users of a queue that a campaign worth its time must notice, each with a group that has to.
SABOTAGES = {
    "silent_producer": "single",
    "silent_consumer": "single",
    "unlocked": "stop",
    "head_first": "single",
    "impatient": "stop",
    "forgetful": "pair",
    "helpless": "asleep",
}

ONCE_SABOTAGES = {
    "late_confirm": "alone",
    "early_complete": "again",
    "uncut": "alone",
    "hasty": "alone",
    "fresh": "replaced",
}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def built(name: str) -> Path:
    """The built campaign; built here if it is not there yet."""
    if not (BUILT / name).exists():
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        subprocess.run([ROOT / "tools" / "native.sh", "plain"], check=True, env={**os.environ, "PATH": path})
    return BUILT / name


@pytest.fixture(scope="module")
def campaign() -> Path:
    """Of the bounded queue."""
    return built("crash_bounded")


@pytest.fixture(scope="module")
def once_campaign() -> Path:
    """Of named producers."""
    return built("crash_once")


def failpoints(areas: str = "ledger|pop|push|recover|roster|shutdown|wait") -> set[str]:
    """All that the headers of the bounded queue name."""
    headers = [ROOT / "native" / f"{name}.hpp" for name in ("ledger", "owner", "producers", "roster", "wait")]
    headers += sorted((ROOT / "native").glob("bounded*.hpp"))
    named = rf'"((?:{areas})\.(?!hpp")[a-z_]+)"'
    return {point for header in headers for point in re.findall(named, header.read_text())}


def play(campaign: Path, *options: str) -> tuple[int, dict]:
    done = subprocess.run([campaign, "--json", *options], capture_output=True, text=True, timeout=300)
    return done.returncode, json.loads(done.stdout)


def test_a_kill_at_every_failpoint_leaves_everything_in_order(campaign):
    status, totals = play(campaign)
    assert totals["failed"] == []
    assert status == 0
    assert totals["cases"] > 10_000
    assert totals["kills"] > 15_000
    assert totals["stops"] > 3_000
    # a failpoint of the headers that nothing was killed at is one that no operation of the campaign reaches
    assert sorted(totals["points"]) == sorted(failpoints())


@pytest.mark.parametrize(("way", "group"), SABOTAGES.items(), ids=list(SABOTAGES))
def test_the_campaign_notices_a_queue_that_is_used_wrongly(campaign, way, group):
    status, totals = play(campaign, "--sabotage", way, "--filter", f"{group}/")
    assert status != 0
    assert totals["failed"]


def test_a_named_producer_killed_at_every_failpoint_and_started_again_puts_each_item_once(once_campaign):
    status, totals = play(once_campaign)
    assert totals["failed"] == []
    assert status == 0
    assert totals["cases"] > 3_000
    assert totals["kills"] > 3_000
    assert totals["stops"] > 2_000
    assert failpoints("once|owner") <= set(totals["points"])
    assert failpoints("push|ledger") <= set(totals["points"])


@pytest.mark.parametrize(("way", "group"), ONCE_SABOTAGES.items(), ids=list(ONCE_SABOTAGES))
def test_the_campaign_notices_a_protocol_of_producers_that_is_broken(once_campaign, way, group):
    status, totals = play(once_campaign, "--sabotage", way, "--filter", f"{group}/")
    assert status != 0
    assert any("lost" in problem or "twice" in problem or "order" in problem for problem in totals["failed"])


def test_a_failed_case_is_played_again_by_its_name(campaign):
    _, totals = play(campaign, "--sabotage", "silent_producer", "--filter", "single/")
    name = totals["failed"][0].split(": ")[0]
    status, again = play(campaign, "--sabotage", "silent_producer", "--filter", name)
    assert status != 0
    assert again["cases"] == 1
    status, right = play(campaign, "--long", "--filter", name)  # the short form varies the survivors
    assert status == 0
    assert right["cases"] == 1
