"""The program as a shell runs it: pipes both ways, closed pipes, Ctrl-C, terminals, colours."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import random
import re
import select
import signal
import subprocess
import time

import numpy as np
import pytest

import queueduct
from tests.support.command import PROGRAM, shell, started
from tests.support.deadline import until

TICK = np.dtype([("sym", "S8"), ("px", "f8")])


@pytest.fixture
def ticks():
    with queueduct.EventQueue.create("ticks", item=TICK) as made:
        made.put_many(np.ones(20_000, TICK))
        yield made


def ended(process, code):
    """Its output and errors, when it has ended with this code."""
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    return out, err


def test_items_go_from_queue_to_queue_through_pipes_and_files(ticks, tmp_path):
    queueduct.BoundedQueue.create("copy", 1 << 15, item=TICK).close()
    for middle in ("cat", "tee t.jsonl"):
        found = shell(f"queueduct tail ticks -n 100 | {middle} | queueduct put copy", tmp_path)
        assert (found.returncode, found.stderr) == (0, "")
    found = shell("queueduct tail ticks -n 50 --format arrow | queueduct put copy --format arrow", tmp_path)
    assert (found.returncode, found.stderr) == (0, ""), "a pipe is no file, and Arrow has a form for each"
    found = shell("queueduct tail ticks -n 50 --format parquet | queueduct put copy --format parquet", tmp_path)
    assert (found.returncode, found.stderr) == (0, "")
    with queueduct.open("copy") as copy:
        assert copy.qsize() == 300
        assert (copy.get_many(300) == np.ones(300, TICK)).all()


def test_a_closed_pipe_ends_a_command_quietly(ticks):
    for command in ("tail ticks -n 20000", "ls", "stat ticks", "--help", "tail ticks -n 20000 --format csv"):
        found = shell(f"queueduct {command} | head -n 0; echo ${{PIPESTATUS[0]}} >&2")
        assert found.stderr in ("141\n", "0\n"), "the command may have been quicker than the end of head"
    found = shell("queueduct tail ticks -n 20000 | head -n 1; echo ${PIPESTATUS[0]} >&2")
    assert (json.loads(found.stdout), found.stderr) == ({"sym": "1", "px": 1.0}, "141\n")


def test_items_that_a_closed_pipe_did_not_take_are_still_in_the_queue():
    with queueduct.BoundedQueue.create("jobs", 4096, slot_bytes=256) as jobs:
        jobs.put_many([b"%04d" % number * 50 for number in range(4096)])
        found = shell("queueduct get jobs -n 4096 --format lines | head -n 3; echo ${PIPESTATUS[0]} >&2")
        assert (len(found.stdout.splitlines()), found.stderr) == (3, "141\n")
        got = jobs.stats().items_got
        assert got < 4096
        assert jobs.qsize() == 4096 - got


def test_a_full_disk_loses_nothing():
    with queueduct.BoundedQueue.create("jobs", 8) as jobs:
        jobs.put_many([b"a", b"b"])
        found = shell("queueduct get jobs -n 2 > /dev/full")
        assert (found.returncode, found.stdout) == (1, "")
        assert found.stderr == "Error: [Errno 28] No space left on device\n"
        assert (jobs.qsize(), jobs.stats().items_got) == (2, 0)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("get", "empty"), "stopped by Ctrl-C: 0 items written; the others are still in empty\n"),
        (("get", "empty", "-f"), "stopped by Ctrl-C: 0 items written; the others are still in empty\n"),
        (("tail", "log", "-f"), "stopped by Ctrl-C: 0 items written\n"),
        (("tail", "log", "--reader", "lake", "--from", "latest", "-f"), "stopped by Ctrl-C: 0 items written, and comm"),
        (("tail", "log", "--from", "0", "-n", "9", "-f"), "stopped by Ctrl-C: 0 items written\n"),
        (("get", "empty", "-n", "9", "-f"), "stopped by Ctrl-C: 0 items written; the others are still in empty\n"),
        (("get", "empty", "-f", "--exec", "true"), "stopped by Ctrl-C: 0 items done\n"),
        (("put", "full", "a"), "stopped by Ctrl-C: 0 items are in full by this command\n"),
        (("put", "empty"), "stopped by Ctrl-C: 0 items are in empty by this command\n"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_ctrl_c_is_one_line_and_the_usual_exit_code(arguments, told):
    """130, but 0 of a command that goes on until then."""
    queueduct.EventQueue.create("log").close()
    queueduct.BoundedQueue.create("empty", 4).close()
    with queueduct.BoundedQueue.create("full", 1) as full:
        full.put(b"x")
        reading, writing = os.pipe()  # a pipe in which nothing comes
        with started(*arguments, stdin=reading) as process:
            until(lambda: is_at_work(process, arguments), "its wait")
            process.send_signal(signal.SIGINT)
            out, err = ended(process, 0 if "-f" in arguments and "-n" not in arguments else 130)
        os.close(reading)
        os.close(writing)
    assert out == ""
    assert err.startswith(told)
    assert len(err.splitlines()) == 1


def is_at_work(process, arguments):
    """Has it opened its queue, with all that comes before? Then Ctrl-C meets its own loop."""
    assert process.poll() is None, process.stderr.read()
    folder = f"/proc/{process.pid}/fd"
    files = []
    for number in os.listdir(folder):
        with contextlib.suppress(OSError):  # it has closed it meanwhile
            files.append(os.readlink(f"{folder}/{number}"))
    queue = f"{os.environ['QUEUEDUCT_DIR']}/{arguments[1]}"
    with open(f"/proc/{process.pid}/wchan") as file:
        is_asleep = file.read() not in ("0", "")
    return is_asleep and any(file == queue for file in files)


def test_ctrl_c_in_a_terminal_ends_bench_with_its_other_process(queue_dir):
    """A terminal sends it to both processes."""
    with started("bench", "bounded", "--seconds", "60", start_new_session=True) as process:
        children = f"/proc/{process.pid}/task/{process.pid}/children"
        until(lambda: "spawn_main" in "".join(map(command_of, open_text(children).split())), "the other process")
        os.killpg(process.pid, signal.SIGINT)
        assert ended(process, 130) == ("", "stopped by Ctrl-C\n")
    assert list(queue_dir.iterdir()) == []


def open_text(path):
    with open(path) as file:
        return file.read()


def command_of(pid):
    try:
        return open_text(f"/proc/{pid}/cmdline")
    except OSError:
        return ""


def test_ctrl_c_at_work_counts_to_the_item(tmp_path):
    """A producer is stopped in the midst of a rate; what it says is in is in."""
    with (
        queueduct.BoundedQueue.create("jobs", 4096) as jobs,
        started("put", "jobs", "--format", "lines", "--rate", "1k/s", stdin=subprocess.PIPE) as process,
    ):
        process.stdin.write("x\n" * 4000)
        process.stdin.flush()
        until(lambda: jobs.qsize() > 20, "some items")
        process.send_signal(signal.SIGINT)
        _, err = ended(process, 130)
        assert err == f"stopped by Ctrl-C: {jobs.qsize():,} items are in jobs by this command\n"


def test_ctrl_c_completes_the_file_of_what_was_taken(tmp_path):
    with queueduct.BoundedQueue.create("jobs", 16) as jobs:
        jobs.put_many([b"a", b"b"])
        with started("get", "jobs", "-n", "9", "-o", tmp_path / "x.jsonl") as process:
            until(lambda: jobs.stats().leased == 2 and jobs.stats().waits_for_items == 1, "its wait for a third")
            assert not (tmp_path / "x.jsonl").exists()
            process.send_signal(signal.SIGINT)
            _, err = ended(process, 130)
        assert err == "stopped by Ctrl-C: 2 items written; the others are still in jobs\n"
        assert (tmp_path / "x.jsonl").read_text() == '"a"\n"b"\n'
        assert (jobs.qsize(), jobs.stats().items_got) == (0, 2)


def test_a_killed_get_gives_its_items_back_and_leaves_no_file_of_that_name(tmp_path):
    with queueduct.BoundedQueue.create("jobs", 16) as jobs:
        jobs.put_many([b"a", b"b"])
        with started("get", "jobs", "-n", "9", "-o", tmp_path / "x.jsonl") as process:
            until(lambda: jobs.stats().leased == 2 and jobs.stats().waits_for_items == 1, "its wait for a third")
            process.kill()
        assert not (tmp_path / "x.jsonl").exists()
        assert sorted(jobs.get(timeout=30) for _ in range(2)) == [b"a", b"b"]


@pytest.mark.slow
def test_no_item_is_lost_or_doubled_whenever_get_is_ended(tmp_path):
    """Ten times, by Ctrl-C or a kill, at any moment from its start to its end; into a pipe and into a file."""
    rng = random.Random(7)
    found = []
    with queueduct.BoundedQueue.create("jobs", 1 << 14) as jobs:
        jobs.put_many([b"%d" % number for number in range(1 << 14)])
        for turn in range(10):
            file = tmp_path / f"{turn}.txt"
            arguments = rng.choice([("-n", "500"), ("-n", "500", "-o", file), ("-n", "3000")])
            with started("get", "jobs", "--format", "lines", *arguments) as process:
                until(lambda process=process: process.poll() is not None or imports_are_done(process), "the import")
                time.sleep(rng.uniform(0, 0.3))
                process.send_signal(rng.choice([signal.SIGINT, signal.SIGINT, signal.SIGKILL]))
                out, err = process.communicate(timeout=60)
                assert process.returncode in (0, 130, -signal.SIGKILL), err
                assert len(err.splitlines()) == (process.returncode == 130)
            lines = file.read_text() if file.exists() else out
            found += lines.split("\n")[:-1]
        while (left := jobs.stats().size) > 0:
            found += [item.decode() for item in jobs.get_many(left, timeout=30)]
    assert len(found) == 1 << 14
    assert set(found) == {str(number) for number in range(1 << 14)}


def imports_are_done(process):
    """Has it loaded the last of what it imports, the kinds of queues?"""
    try:
        with open(f"/proc/{process.pid}/maps") as file:
            return "queueduct/slots/" in file.read()
    except OSError:
        return True


def test_tail_follows_what_comes(ticks):
    with started("tail", "ticks", "-n", "0", "-f") as process:
        until(lambda: is_at_work(process, ("tail", "ticks")), "its wait")
        for number in range(3):
            ticks.put((b"A", number))
            assert json.loads(process.stdout.readline())["px"] == number, "each is there when it is put"
        ticks.shutdown()
        assert ended(process, 0) == ("", "")


def in_terminal(arguments, columns=80, **environment):
    """What a terminal of so many columns gets of a command."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [str(PROGRAM), *arguments],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env={**os.environ, "COLUMNS": str(columns), "TERM": "xterm-256color", **environment},
    )
    os.close(follower)
    told = b""
    while select.select([leader], [], [], 60)[0]:
        try:
            part = os.read(leader, 65536)
        except OSError:  # the terminal's other end is closed
            break
        if not part:
            break
        told += part
    os.close(leader)
    return process.wait(60), told.decode().replace("\r\n", "\n")


def test_a_terminal_gets_tables_that_fit_and_a_pipe_json(ticks):
    ticks.put_many([(b"ACME", 101.5), (b"\x1b[31m", np.nan)])
    code, told = in_terminal(["tail", "ticks", "-n", "2"])
    assert code == 0
    assert [line.split() for line in told.splitlines()] == [["sym", "px"], ["ACME", "101.5"], ["\\x1b[31m", "NaN"]]
    with queueduct.BoundedQueue.create("jobs", 4, slot_bytes=300) as jobs:
        jobs.put_many([b"x" * 300, b"one\ntwo"])
        code, told = in_terminal(["get", "jobs", "-n", "2"], columns=60)
    assert told == "x" * 59 + "…\none\\ntwo\n"


@pytest.mark.parametrize(("environment", "is_colored"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_states_are_coloured_in_a_terminal_unless_nobody_wants_that(ticks, environment, is_colored):
    ticks.subscribe("held", start="earliest")
    code, told = in_terminal(["doctor"], **environment)
    assert code == 0, told
    assert ("\x1b[" in told) == is_colored
    assert "\x1b[" not in shell("queueduct doctor").stdout


def test_progress_is_shown_in_a_terminal_and_removed_at_the_end(tmp_path):
    with queueduct.BoundedQueue.create("jobs", 4096):
        (tmp_path / "x.txt").write_text("x\n" * 150)
        code, told = in_terminal(["put", "jobs", str(tmp_path / "x.txt"), "--rate", "100/s"])
    assert code == 0
    assert "putting into jobs: " in told
    assert told.endswith("\r\x1b[2Kput 150 items into jobs\n")
    assert max(len(re.sub(r"\x1b\[\S", "", part)) for part in told.split("\r")) <= 80
