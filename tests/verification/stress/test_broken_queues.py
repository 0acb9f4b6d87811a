"""Queues with a fault each (tests/native/broken_queues.hpp), recorded like real ones: what is wrong must show."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from queueduct.verification.history import recorder
from tests.verification.stress.recorded import Recorded, problems

BUILT = Path(__file__).parents[3] / "build" / "native" / "tests" / "native" / "broken_queues"
SYMPTOMS = {
    "none": (),
    "no_generation_check": ("torn", "fresh", "repeat", "ticket", "lost"),
    "false_empty": ("empty",),
    "double_delivery": ("repeat", "ticket"),
    "lost_item": ("lost",),
    "naive_growing": ("lost",),
}


def broken_history(fault: str, target: Path, items: int, seed: int) -> Path:
    """A history of a queue with that fault, as `queueduct stress` would have written it."""
    if not BUILT.exists():
        pytest.skip("the native tests are not built: tools/native.sh plain")
    clock = recorder.Clock(is_counter=False, tick_step=1)
    timing = recorder.Timing(clock)
    unfinished = recorder.UnfinishedHistory(target, f"{fault}-{seed}")
    try:
        command = [BUILT, fault, unfinished.rows, str(items), str(seed)]
        capacity = int(subprocess.run(command, check=True, capture_output=True, timeout=60).stdout)
        timing.stop()
        operations = unfinished.convert(timing)
    except BaseException:
        unfinished.abandon()
        raise
    kind = "bounded" if capacity else "unbounded"
    unfinished.finish(
        {
            "kind": kind,
            "capacity": capacity or None,
            "clock": clock.name,
            "host": recorder.machine(),
            "versions": recorder.versions(),
            "run": unfinished.folder.name,
            "operations": operations,
            "drained": True,
        }
    )
    return target


def by_recording(folder: Path) -> set[str]:
    return {problem.partition(":")[0] for problem in problems(Recorded(folder))}


def by_check(folder: Path) -> set[str]:
    check = pytest.importorskip("queueduct.verification.check", reason="it comes with Spark").check
    verdict = check(folder)
    assert verdict.ok == (not verdict.violations)
    assert all(violation.witnesses for violation in verdict.violations)
    return set(verdict.counts)


@pytest.mark.parametrize("look", [by_recording, by_check])
@pytest.mark.parametrize("fault", SYMPTOMS)
def test_a_broken_queue_shows_its_fault_and_a_sound_one_none(fault, look, tmp_path):
    seen: set[str] = set()
    for seed in range(1, 20):  # threads meet where they must not, sooner or later
        found = look(broken_history(fault, tmp_path / str(seed), 20_000, seed))
        if fault == "none":
            assert found == set()
            if seed == 2:
                return
        seen |= found
        if seen & set(SYMPTOMS[fault]):
            return
    pytest.fail(f"no sign of {fault} in 19 runs, only {sorted(seen)}")
