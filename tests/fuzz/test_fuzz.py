"""Damaged segments: never a crash, never a hang. The cases are in fuzzing.py, by number."""

from __future__ import annotations

import ast
import subprocess

import pytest

from tests.fuzz.targets import KINDS, TARGETS

CASES, LONG_CASES, WORKERS = 10_000, 200_000, 2

# Said by CPython when it gives up a pickle that is garbage: its own matter, after our error was raised.
OF_GARBAGE_PICKLES = "SystemError: deallocated bytearray object has exported buffers\n"


def finish(process, limit_seconds):
    """Its last words; a case that hangs or crashes is named."""
    try:
        out, err = process.communicate(timeout=limit_seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        err += "\nhangs"
    lines = out.splitlines()
    err = err.replace(OF_GARBAGE_PICKLES, "")
    assert (process.returncode, err) == (0, ""), f"case {[line for line in lines if line.isdigit()][-1:]}: {err}"
    return lines[-1]


@pytest.mark.slow
@pytest.mark.timeout(4000)
@pytest.mark.parametrize("target", list(TARGETS))
def test_every_damaged_segment_works_or_is_refused(children, is_long, queue_dir, monkeypatch, target):
    """Header, item text, control block, every table, and what items are found by; before and after opening."""
    share = (LONG_CASES if is_long else CASES) // WORKERS
    workers = []
    for number in range(WORKERS):
        monkeypatch.setenv("QUEUEDUCT_DIR", str(queue_dir / str(number)))
        workers.append(children.start("from tests.fuzz import fuzzing; fuzzing.main()", target, number * share, share))
    for worker in workers:
        summary = ast.literal_eval(finish(worker, 3600 if is_long else 110))
        assert summary["works"] > share
        assert summary["CorruptSegment"] > share // 5


@pytest.mark.parametrize("target", list(TARGETS))
@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_a_segment_that_somebody_scribbles_into_works_or_is_refused(children, kind, target):
    """One process strikes as fast as it can while another one calls everything, for a second."""
    victim = children.start("from tests.fuzz import fuzzing; fuzzing.be_struck()", target, kind)
    assert victim.stdout.readline() == "ready\n"
    children.start("from tests.fuzz import fuzzing; fuzzing.scribble()", target, kind)
    assert ast.literal_eval(finish(victim, 60))["CorruptSegment"] > 0
