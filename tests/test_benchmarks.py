"""The harness of the benchmarks: nothing here is timed, everything here is about trust.

Promised: a run that loses, doubles, changes or reorders an item is found out, a peer that hangs or
dies costs its row and nothing else, and what is written has the shape that the README describes.
"""

import importlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from benchmarks import items, results
from benchmarks.case import Case, Contender, Goal, Plan
from benchmarks.flow import Flow, measure_flow
from benchmarks.isolation import FAILED, NOT_INSTALLED, OK, Sample, isolated
from benchmarks.rounds import Entry, Rounds, judge
from benchmarks.rows import all_cases, chosen
from benchmarks.standard import MultiprocessingQueue

ROOT = Path(__file__).resolve().parents[1]

pytestmark = pytest.mark.timeout(60)

PLANTED = '''
"""Queues with planted faults, as a module of its own so that every process can import it."""
import os
import signal
import time

from benchmarks.adapter import Receiver, Sender, load
from benchmarks.standard import MultiprocessingQueue


class Hanging(MultiprocessingQueue):
    name = "hanging"

    def receiver(self, index):
        return Receiver(get=lambda: time.sleep(3600))


class Dying(MultiprocessingQueue):
    name = "dying"

    def receiver(self, index):
        return Receiver(get=lambda: os.kill(os.getpid(), signal.SIGKILL))


class Missing(MultiprocessingQueue):
    name = "missing"

    def __init__(self, room):
        load("a_peer_that_nobody_has_installed")


class Raising(MultiprocessingQueue):
    name = "raising"

    def sender(self, index):
        raise RuntimeError("no room at the inn")


class Swapping(MultiprocessingQueue):
    """Delivers every pair of items in the wrong order."""

    name = "swapping"

    def sender(self, index):
        held = []

        def put(item):
            if not held:
                held.append(item)
                return
            self.queue.put(item)
            self.queue.put(held.pop())

        return Sender(put=put)


class Doubling(MultiprocessingQueue):
    """Delivers the first of every hundred items instead of the second."""

    name = "doubling"

    def sender(self, index):
        seen = []

        def put(item):
            seen.append(item)
            self.queue.put(seen[-2] if len(seen) % 100 == 2 else item)

        return Sender(put=put)
'''


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Give the planted queues under a name that the workers can import too."""
    (tmp_path / "planted_queues.py").write_text(PLANTED)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "planted_queues", raising=False)
    return importlib.import_module("planted_queues")


def sent(counts: list[int]) -> list[np.ndarray]:
    """Return what one consumer sees when each producer in turn has sent its items."""
    keys = [items.keys_of(producer, 0, count) for producer, count in enumerate(counts)]
    return [np.concatenate(keys)]


def test_a_faithful_run_has_no_faults() -> None:
    assert items.faults(sent([100, 50]), [100, 50]) == []


def test_items_shared_between_consumers_are_still_faithful() -> None:
    (keys,) = sent([100, 100])
    assert items.faults([keys[::2], keys[1::2]], [100, 100]) == []


def test_a_lost_item_is_found() -> None:
    (keys,) = sent([100, 50])
    (fault,) = items.faults([np.delete(keys, 120)], [100, 50])
    assert fault == "producer 1: 1 of 50 items lost"


def test_a_doubled_item_is_found_within_one_consumer_and_between_two() -> None:
    (keys,) = sent([100])
    expected = ["producer 0: 1 items delivered twice"]
    assert items.faults([np.insert(keys, 7, keys[7])], [100]) == expected
    assert items.faults([keys, keys[7:8]], [100]) == expected


def test_swapped_items_are_found() -> None:
    (keys,) = sent([100])
    keys[[40, 41]] = keys[[41, 40]]
    assert items.faults([keys], [100]) == ["consumer 0: producer 0 out of order 1 times"]


def test_an_item_that_nobody_sent_is_found() -> None:
    (keys,) = sent([100])
    stranger = items.keys_of(producer=9, first=0, count=1)
    late = items.keys_of(producer=0, first=100, count=1)
    expected = ["1 items arrived that were never sent"]
    assert items.faults([np.append(keys, stranger)], [100]) == expected
    assert items.faults([np.append(keys, late)], [100]) == expected


def test_items_survive_the_way_through_bytes() -> None:
    built = items.build(producer=3, first=5, count=1000)
    assert {len(item) for item in built} == {items.ITEM_BYTES}
    assert np.array_equal(items.keys_in(built), items.keys_of(3, 5, 1000))


def test_an_item_of_two_halves_is_torn() -> None:
    one, other = items.build(producer=0, first=0, count=2)
    with pytest.raises(items.TornItemError, match="1 items were torn"):
        items.keys_in([one, one[:32] + other[32:]])


def test_an_item_of_the_wrong_length_is_torn() -> None:
    (item,) = items.build(producer=0, first=0, count=1)
    with pytest.raises(items.TornItemError, match="63 bytes"):
        items.keys_in([item[:-1]])


def test_a_faithful_queue_is_measured(tmp_path: Path) -> None:
    flow = Flow(MultiprocessingQueue, producers=2, consumers=2)
    outcome = isolated(measure_flow, flow, 200, timeout=30, directory=tmp_path)
    assert (outcome.status, outcome.why) == (OK, "")
    assert outcome.sample is not None
    assert outcome.sample.value > 0


@pytest.mark.parametrize(("name", "fault"), [("Swapping", "out of order"), ("Doubling", "twice")])
def test_a_queue_with_a_planted_fault_fails(planted: ModuleType, tmp_path: Path, name: str, fault: str) -> None:
    flow = Flow(getattr(planted, name), capacity=128)
    outcome = isolated(measure_flow, flow, 300, timeout=30, directory=tmp_path)
    assert outcome.status == FAILED
    assert fault in outcome.why


def test_a_hanging_peer_is_killed_with_its_whole_group(planted: ModuleType, tmp_path: Path) -> None:
    outcome = isolated(measure_flow, Flow(planted.Hanging), 100, timeout=2, directory=tmp_path)
    assert outcome.status == FAILED
    assert outcome.why == "hung: killed after 2 s"
    wait_until_nobody_uses(tmp_path)
    assert [path for path in tmp_path.iterdir() if path.name.startswith("psb")] == []


def test_workers_end_with_a_harness_that_was_killed(planted: ModuleType, tmp_path: Path) -> None:
    program = (
        "import sys, pathlib, planted_queues\n"
        "from benchmarks.flow import Flow, measure_flow\n"
        "from benchmarks.isolation import isolated\n"
        "here = pathlib.Path(sys.argv[1])\n"
        "flow = Flow(planted_queues.Hanging)\n"
        "isolated(measure_flow, flow, 100, timeout=3600, directory=here)\n"
    )
    paths = os.pathsep.join([str(ROOT), str(tmp_path)])
    environment = {**os.environ, "PYTHONPATH": paths}
    runs = tmp_path / "runs"
    runs.mkdir()
    with subprocess.Popen([sys.executable, "-c", program, str(runs)], env=environment) as harness:
        while not any(str(runs) in target for target in open_files()):
            time.sleep(0.01)  # until the supervisor has opened its log
        harness.kill()
    wait_until_nobody_uses(runs)


def wait_until_nobody_uses(directory: Path) -> None:
    """Wait until no process has a file of the directory open: the killed need a moment to go."""
    while any(str(directory) in target for target in open_files()):
        time.sleep(0.01)  # the test's own timeout is the limit


def open_files() -> list[str]:
    found = []
    for descriptor in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            found.append(os.readlink(descriptor))
        except OSError:
            continue
    return found


@pytest.mark.parametrize(
    ("name", "status", "why"),
    [
        ("Dying", FAILED, "consumer 0 died with exit code -9"),
        ("Raising", FAILED, "no room at the inn"),
        ("Missing", NOT_INSTALLED, "a_peer_that_nobody_has_installed"),
    ],
)
def test_a_broken_peer_says_why(planted: ModuleType, tmp_path: Path, name: str, status: str, why: str) -> None:
    flow = Flow(getattr(planted, name))
    outcome = isolated(measure_flow, flow, 100, timeout=30, directory=tmp_path)
    assert outcome.status == status
    assert why in outcome.why


def test_a_hanging_peer_costs_its_row_and_nothing_else(planted: ModuleType, tmp_path: Path) -> None:
    good = Contender("good", measure_flow, Flow(MultiprocessingQueue), amount=100, ours=True)
    hanging = Contender("hanging", measure_flow, Flow(planted.Hanging), amount=100)
    case = Case("planted", "a planted fault", "items/s", (good, hanging), (Goal(3.0),))
    rounds = Rounds(Plan(rounds=2, timeout=2), tmp_path, lambda *_: None)
    measured = rounds.measure(case)
    assert [entry.status for entry in measured.entries] == [OK, FAILED]
    assert len(measured.entries[0].samples) == 2
    assert measured.verdicts[0].reached is None
    assert not measured.ours_failed


def test_ours_failing_is_an_error(planted: ModuleType, tmp_path: Path) -> None:
    flow = Flow(planted.Swapping, capacity=128)
    swapping = Contender("ours", measure_flow, flow, amount=300, ours=True)
    case = Case("planted", "a planted fault", "items/s", (swapping,), ())
    assert Rounds(Plan(rounds=1), tmp_path, lambda *_: None).measure(case).ours_failed


def entry(name: str, values: list[float], *, ours: bool = False) -> Entry:
    contender = Contender(name, measure_flow, None, amount=1, ours=ours)
    return Entry(contender, samples=[Sample(value, 1.0) for value in values])


def test_a_ratio_is_taken_within_each_round_and_its_median_decides() -> None:
    entries = [entry("ours", [8.0, 9.0, 30.0], ours=True), entry("peer", [2.0, 3.0, 5.0])]
    case = Case("planted", "rates", "items/s", (), ())
    verdict = judge(case, Goal(4.0), entries)
    assert (verdict.ratio, verdict.least, verdict.most) == (4.0, 3.0, 6.0)
    assert verdict.reached
    assert "peer" in verdict.text


def test_less_time_is_better_and_a_cost_has_an_upper_limit() -> None:
    entries = [entry("ours", [2.0], ours=True), entry("pipe", [30.0]), entry("eventfd", [1.0])]
    case = Case("planted", "times", "s", (), (), higher_is_better=False)
    assert judge(case, Goal(15.0, "pipe"), entries).reached
    assert judge(case, Goal(2.0, "eventfd", "at most"), entries).ratio == 2.0
    assert judge(case, Goal(1.0, "", "at most"), entries).reached is False


def test_a_goal_without_its_peer_is_not_judged() -> None:
    case = Case("planted", "rates", "items/s", (), ())
    assert judge(case, Goal(3.0), [entry("ours", [1.0], ours=True)]).reached is None


def test_results_are_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    results.write_whole(path, {"schema": 1})
    with pytest.raises(TypeError):
        results.write_whole(path, {"schema": object()})
    assert json.loads(path.read_text()) == {"schema": 1}
    assert [each.name for each in tmp_path.iterdir()] == ["results.json"]


def test_every_row_can_be_chosen_by_its_name_or_its_family() -> None:
    cases = all_cases(Plan())
    for case in cases:
        assert case in chosen(cases, (case.name,))
    assert {case.name for case in chosen(cases, ("bytes",))} == {
        "bytes-1p1c",
        "bytes-2p2c",
        "bytes-4p4c",
    }
    assert chosen(cases, ("no-such-row",)) == []


def run_harness(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_row_that_does_not_exist_is_refused() -> None:
    answer = run_harness("--only", "no-such-row")
    assert answer.returncode == 2
    assert "no row is named no-such-row" in answer.stderr


def test_a_tiny_run_ends_with_results_of_the_documented_shape(tmp_path: Path) -> None:
    answer = run_harness(
        *("--quick", "--only", "bytes-1p1c", "--no-peers", "--no-plot"),
        *("--items", "300", "--rounds", "2", "--out", str(tmp_path)),
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]
    found = json.loads((tmp_path / "results.json").read_text())
    assert {"schema", "machine", "commit", "command", "started", "rows"} <= set(found)
    assert found["schema"] == results.SCHEMA
    assert {"cpu", "cores", "kernel", "python"} <= set(found["machine"])
    assert found["command"].startswith("python -m benchmarks --quick")
    assert (found["quick"], found["rounds"]) == (True, 2)
    assert found["rows"]
    for row in found["rows"]:
        assert row["row"] == "bytes-1p1c"
        assert row["placement"] in ("pinned", "unpinned")
        (ours,) = row["entries"]
        assert (ours["name"], ours["ours"], ours["status"]) == ("queueduct", True, OK)
        assert len(ours["values"]) == 2
        assert min(ours["values"]) <= ours["median"] <= max(ours["values"])
        assert {goal["reached"] for goal in row["goals"]} == {None}
