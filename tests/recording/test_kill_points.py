"""A recorder is killed before and after each call that changes its directory or writes it to the disk, one by one.

The calls are enumerated by a preloaded library: tests/support/shims/steps.c.
"""

from __future__ import annotations

import json

import pytest

from tests.recording.ticks import MAKERS, table_of
from tests.support.preloading import needs_compiler, preload

# Forks a recorder for each step: it is killed there, and the next one goes on. Prints what was there after each kill.
RECORD = """
import ctypes, json, os, sys, warnings
from pathlib import Path
import queueduct
from queueduct.recording import record
from tests.recording.ticks import ticks

warnings.simplefilter("ignore", DeprecationWarning)  # forks
folder, log = Path(sys.argv[1]), Path(sys.argv[2])
libc = ctypes.CDLL(None)

def recorder(kill_at):
    log.unlink(missing_ok=True)
    pid = os.fork()
    if pid == 0:
        libc.setenv(b"STEPS_KILL", str(kill_at).encode(), 1)
        record(queueduct.open("q"), folder, rows_per_file=20, available_now=True)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

put, runs = 0, []
q = queueduct.open("q")
while not runs or runs[-1]["code"]:
    assert q.put_many(ticks(40, put), timeout=5) == 40
    put += 40
    code = recorder(len(runs) + 1)
    steps = [line.split()[1:] for line in log.read_text().splitlines()]
    ends = [int(path.stem.partition("-")[2]) + 1 for path in folder.glob("*.parquet")]
    committed = [reader.committed for reader in q.readers()] if hasattr(q, "readers") else []
    runs.append({"code": code, "steps": steps, "end": max(ends, default=0), "committed": committed})
    assert recorder(0) == 0
print(json.dumps({"runs": runs, "put": put}))
"""


@needs_compiler
@pytest.mark.parametrize("kind", [kind for kind in MAKERS if kind != "overwriting"])
def test_a_kill_at_any_step_of_a_file_neither_loses_nor_repeats_a_position(kind, queue_dir, children, monkeypatch):
    folder, log = queue_dir / "rec", queue_dir / ".steps"  # in memory: a disk takes its time for each sync
    with MAKERS[kind]() as q:
        preload(monkeypatch, "steps", STEPS_IN=f"{folder}", STEPS_LOG=log)
        told = json.loads(children.run(RECORD, folder, log))
        *killed, ended = told["runs"]
        assert ended["code"] == 0
        assert q.stats().size == 0 or kind == "events"
    found = table_of(folder)
    assert found["n"].to_pylist() == list(range(told["put"]))
    assert len(set(found["position"].to_pylist())) == told["put"]
    check_every_step_was_tried(killed)
    for one in killed:
        assert all(committed <= one["end"] for committed in one["committed"]), one


def check_every_step_was_tried(killed):
    """Each kill came one step later, and they came before and after each kind of step of a file."""
    assert all(one["code"] == -9 for one in killed)
    assert [len(one["steps"]) for one in killed] == list(range(1, len(killed) + 1))
    tried = [tuple(one["steps"][-1]) for one in killed]
    temporary = "_recording.tmp"
    for when in ("before", "after"):
        for call, name in (
            ("open", temporary),
            ("write", temporary),
            ("fsync", temporary),
            ("rename", temporary),
            ("fsync", "rec"),
        ):
            assert (when, call, name) in tried, f"{when} {call} {name}"
    of_a_file = [call for _, call, name in killed[-1]["steps"] if call != "write"]
    assert of_a_file.index("open") < of_a_file.index("fsync") < of_a_file.index("rename")
    assert of_a_file[of_a_file.index("rename") + 2] == "fsync"
