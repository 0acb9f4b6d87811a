"""Ctrl-C at any moment of a command: one line, exit code 130, and nothing that it had started is left."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.spark.rows import numbered
from tests.support.deadline import until

PROGRAM = Path(sys.executable).with_name("queueduct")
LINE = "stopped by {}: all that it had started has ended\n"
MARK = "QUEUEDUCT_TEST_ENDING"


class Command:
    """A command as a terminal starts it, in a session of its own, and whoever it starts: they inherit the mark."""

    def __init__(self, folder, *arguments):
        self.mark = f"{MARK}={folder}".encode()
        self.out, self.err = folder / "out", folder / "err"
        (folder / "tmp").mkdir()
        with self.out.open("w") as out, self.err.open("w") as err:
            self.process = subprocess.Popen(
                [PROGRAM, *arguments],
                env=dict(os.environ, TMPDIR=str(folder / "tmp"), **{MARK: str(folder)}),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    def running(self):
        """All processes with the mark, by what they run."""
        found = {}
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if self.mark in (path / "environ").read_bytes().split(b"\0"):
                    found[int(path.name)] = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        return found

    def wait_for(self, words, seconds=120.0):
        """Until somebody runs this."""
        until(
            lambda: self.process.poll() is not None or any(words in it for it in self.running().values()),
            words,
            seconds,
        )
        assert self.process.poll() is None, self.err.read_text()

    def press(self, number=signal.SIGINT, *, is_group=True, times=1):
        for _ in range(times):
            with contextlib.suppress(ProcessLookupError):
                (os.killpg if is_group else os.kill)(self.process.pid, number)
            time.sleep(0.05)  # as fast as somebody can press

    def check_ended(self, number=signal.SIGINT, name="Ctrl-C"):
        assert self.process.wait(60) == 128 + number, self.err.read_text()
        until(lambda: not self.running(), f"the end of {self.running()}", 5)
        assert (self.err.read_text(), self.out.read_text()) == (LINE.format(name), "")

    def end(self):
        for pid in self.running():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def command(ticks, tmp_path):
    ticks.put_many(numbered(0, 100))
    started = []

    def start(*arguments):
        folder = tmp_path / str(len(started))
        folder.mkdir()
        started.append(Command(folder, *arguments))
        return started[-1]

    yield start
    for each in started:
        each.end()


LAUNCHER, JAVA, READER = (
    "org.apache.spark.launcher.Main",
    "org.apache.spark.deploy.SparkSubmit",
    "python_streaming_source",
)


@pytest.mark.parametrize(
    ("moment", "is_group", "times"),
    [(LAUNCHER, False, 1), (JAVA, True, 3), (JAVA, False, 1)],
    ids=["launcher", "java", "java alone"],
)
def test_ctrl_c_while_java_starts_ends_everything_and_is_one_line(command, tmp_path, moment, is_group, times):
    archive = command("archive", "ticks", "--to", str(tmp_path / "lake"))
    archive.wait_for(moment)
    archive.press(is_group=is_group, times=times)
    archive.check_ended()
    assert list((tmp_path / "0" / "tmp").glob("queueduct-spark-*")) == [], "nor are files"


@pytest.mark.parametrize(("number", "name"), [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")])
def test_a_signal_while_everything_is_imported_is_one_line_too(command, tmp_path, number, name):
    archive = command("archive", "ticks", "--to", str(tmp_path / "lake"))
    maps = Path(f"/proc/{archive.process.pid}/maps")
    until(lambda: "/numpy/" in maps.read_text(), "the import of numpy")
    archive.press(number)
    archive.check_ended(number, name)


def test_sigterm_while_a_query_is_planned_ends_everything_and_no_reader_is_left(command, ticks, tmp_path):
    archive = command("archive", "ticks", "--to", str(tmp_path / "lake"), "--json")
    archive.wait_for(READER)
    archive.press(signal.SIGTERM, is_group=False)
    code = archive.process.wait(60)
    until(lambda: not archive.running(), "the end of all", 5)
    if code:  # else it had come to work by then, and has ended in order
        archive.check_ended(signal.SIGTERM, "SIGTERM")
        assert [reader.name for reader in ticks.readers() if reader.name] == []


@pytest.mark.parametrize(
    ("number", "name", "times"), [(signal.SIGTERM, "SIGTERM", 1), (signal.SIGINT, "Ctrl-C", 3)], ids=["all", "thrice"]
)
def test_a_query_at_work_that_cannot_end_in_order_ends_with_one_line(command, tmp_path, number, name, times):
    """Its Java has ended by the same signal, or somebody does not want to wait."""
    lake = tmp_path / "lake"
    archive = command("archive", "ticks", "--to", str(lake), "--max-rows", "1", "--json")
    until(lambda: (lake / "_checkpoint" / "commits" / "1").exists(), "the second batch", 240)
    archive.press(number, times=times)
    archive.check_ended(number, name)


def test_ctrl_c_in_the_demo_ends_its_producers_and_removes_its_queues(command, queue_dir, tmp_path):
    demo = command("demo", "--seconds", "30", "--out", str(tmp_path / "demo"), "--json")
    demo.wait_for("multiprocessing.spawn")
    demo.press(times=4)
    demo.check_ended()
    assert list(queue_dir.glob("demo-*")) == []


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("name", ["archive", "aggregate", "demo"])
def test_ctrl_c_at_random_moments_leaves_nothing(command, tmp_path, name, seed):
    rng = random.Random(f"{name} {seed}")
    to = str(tmp_path / "to")
    arguments = {
        "archive": ["archive", "ticks", "--to", to],
        "aggregate": ["aggregate", "ticks", "--window", "1s", "--agg", "count(*)", "--to", "out", "--checkpoint", to],
        "demo": ["demo", "--out", to],
    }[name]
    running = command(*arguments)
    time.sleep(rng.uniform(0.7, 15.0))
    running.press(rng.choice([signal.SIGINT, signal.SIGTERM]), is_group=rng.random() < 0.5, times=rng.choice([1, 2, 5]))
    code = running.process.wait(200)
    until(lambda: not running.running(), f"the end of {running.running()}", 5)
    assert code in (0, 128 + signal.SIGINT, 128 + signal.SIGTERM)
    if code:
        assert running.err.read_text().splitlines()[-1].startswith("stopped by ")
        assert "Traceback" not in running.err.read_text()
