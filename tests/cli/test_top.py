"""``queueduct top`` as a person sees it: driven by keys and read in a real terminal."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time

import pytest
from click.testing import CliRunner

import queueduct
from queueduct.cli import main
from queueduct.cli.live.words import age, bar, count, memory
from tests.support import terminal as terminals
from tests.support.children import environment
from tests.support.terminal import COMMAND, terminal

in_a_terminal = pytest.mark.skipif(terminals.missing() is not None, reason=terminals.missing() or "")
FAST = ("top", "-d", "0.1")


@pytest.fixture
def queues():
    with (
        queueduct.EventQueue.create("ticks", item="f8") as ticks,
        queueduct.BoundedQueue.create("jobs", 64) as jobs,
        queueduct.OverwritingQueue.create("feed", 16, item="f8") as feed,
        queueduct.GrowingQueue.create("bursts") as bursts,
        queueduct.SlotQueue.create("frames", 4, slot_bytes=64) as frames,
    ):
        jobs.put_many([b"a", b"b"])
        yield {each.name: each for each in (ticks, jobs, feed, bursts, frames)}


def call(*arguments):
    return CliRunner().invoke(main, arguments)


def lines_of(screen: str) -> dict[str, str]:
    """The lines of the table, by queue."""
    return {line.split()[0]: line for line in (line.lstrip("▸ ") for line in screen.splitlines()) if line.split()}


@in_a_terminal
@pytest.mark.parametrize("columns", [80, 200])
def test_the_table_is_right_in_a_narrow_and_in_a_wide_terminal(queues, columns):
    queues["jobs"].shutdown()
    with queueduct.BoundedQueue.create("a-long-name-of-a-queue", 4), terminal(columns) as term:
        term.start(*FAST)
        screen = term.until("frames")
        assert "queueduct top" in screen
        assert "6 queues" in screen
        head = next(line for line in screen.splitlines() if "depth" in line)
        wide = {"kind", "MB/s", "memory", "recovered/lost", "waits/s", "state"}
        assert {"queue", "depth", "in/s", "out/s", "readers", "alive"} <= set(head.split())
        assert ("recovered/lost" in head, wide <= set(head.split())) == (columns == 200,) * 2
        assert all(len(line) <= columns for line in screen.splitlines())
        found = lines_of(screen)
        assert set(queues) <= set(found)
        assert "shut down" in found["jobs"], "also where there is no room for the column of states"
        term.press("q")
        term.until("exit 0")


@in_a_terminal
@pytest.mark.parametrize(("lines", "shown"), [(24, 19), (10, 5), (6, 1)])
def test_as_many_queues_are_shown_as_there_are_lines_for(queue_dir, lines, shown):
    for number in range(30):
        queueduct.BoundedQueue.create(f"q{number:02}", 4).close()
    with terminal(80, lines) as term:
        term.start(*FAST)
        screen = term.until("by name")
        assert [line.split()[0] for line in screen.splitlines() if re.match(r"\W*q\d\d", line)] == [
            f"q{number:02}" for number in range(shown)
        ]
        assert len(screen.rstrip("\n").splitlines()) == lines, "the last line is the line of keys"
        (queue_dir / "q99").write_bytes((queue_dir / "q00").read_bytes()[:64])
        screen = term.until("q99: ")
        assert "by name" in screen.rstrip("\n").splitlines()[-1] or lines < 10
        term.press("q")
        term.until("exit 0")


@in_a_terminal
def test_values_move_and_a_killed_producer_shows_within_two_seconds(queues, children):
    def put_for_ever():
        with queueduct.open("feed") as feed:
            while True:
                feed.put(1.0)
                time.sleep(0.0005)

    with terminal(100) as term:
        term.start("top")  # at its usual pace
        term.until("frames")
        pid = children.fork(put_for_ever)
        term.until(lambda screen: re.search(r"feed .* [1-9][\d.]*k? +0 ", screen))
        term.until(lambda screen: re.search(r" 1 +open$", lines_of(screen)["feed"]))
        children.kill(pid)
        killed = time.monotonic()
        term.until(lambda screen: "1 gone" in lines_of(screen)["feed"] or "1 dead" in lines_of(screen)["feed"])
        assert time.monotonic() - killed < 2
        term.until(lambda screen: re.search(r"feed .* 0 +0 ", screen))


@in_a_terminal
def test_a_reader_that_stops_is_stalled(queues):
    with queues["ticks"].subscribe("slow"), terminal(120) as term:
        term.start(*FAST)
        term.until("1 ok")
        queues["ticks"].put_many([1.0] * 5)
        term.until("1 stalled -5")


@in_a_terminal
def test_keys_choose_a_queue_open_it_and_go_back(queues):
    with queues["ticks"].subscribe("archive"), terminal(120, 40) as term:
        term.start(*FAST)
        term.until("frames")
        term.press("Down")
        term.until("▸ bursts")
        term.press("End")
        term.until("▸ ticks")
        term.press("Enter")
        screen = term.until("losses since it was made")
        assert "events of float64" in screen
        assert "archive" in screen
        assert "participants" in screen
        term.press("Up")
        screen = term.until("bounded of bytes")
        assert str(os.getpid()) in screen
        queues["jobs"].unlink()
        term.until("jobs is gone")
        term.press("Escape")
        term.until(lambda screen: "by name" in screen and "jobs" not in screen)
        term.press("?")
        term.until("sort by")
        term.press("d")
        assert term.until("sort by")
        term.press("?")
        term.until("by depth")
        term.press("+")
        term.until("every 0.1 s")
        term.press("-")
        term.until("every 0.2 s")


@in_a_terminal
def test_queues_come_and_go_and_no_queue_says_how_to_make_one():
    with terminal() as term:
        term.start(*FAST)
        screen = term.until("No queues in")
        assert "BoundedQueue.create" in screen
        with queueduct.BoundedQueue.create("late", 4) as q:
            term.until("late ")
            q.unlink()
        term.until("No queues in")


@in_a_terminal
def test_a_corrupt_queue_says_so_beside_the_others(queues, queue_dir):
    with terminal(120) as term:
        term.start(*FAST)
        term.until("frames")
        os.truncate(queue_dir / "jobs", 0)
        screen = term.until("was truncated")
        assert "corrupt" in lines_of(screen)["jobs"]
        assert "frames" in screen


def is_restored(term) -> bool:
    """The shell's own screen, its cursor, and its line editor: keys are echoed, and Enter ends a line."""
    assert term.of_programs("#{alternate_on} #{cursor_flag}") == "0 1"
    term.type("stty -a | tr ' ' '\\n' | grep -xE '.?(icanon|echo|isig)' | paste -sd ,")
    screen = term.until(lambda screen: re.search(r"^-?(isig|icanon|echo),", screen, re.MULTILINE))
    return "-icanon" not in screen and "-echo" not in screen and "-isig" not in screen


@in_a_terminal
@pytest.mark.parametrize(
    ("end", "code"), [("q", 0), ("C-c", 0), (signal.SIGTERM, 0), (signal.SIGHUP, 0), ("exception", 1)]
)
def test_the_terminal_is_restored_however_it_ends(queues, tmp_path, end, code):
    with terminal() as term:
        term.type("echo before")
        if end == "exception":
            (tmp_path / "sitecustomize.py").write_text(
                "import queueduct.cli.live.screen as screen\n"
                "press = screen.Screen.press\n"
                "def fail(self, key): raise RuntimeError('no room for a screen')\n"
                "screen.Screen.press = fail\n"
            )
            term.type(f"export PYTHONPATH={tmp_path}")
        term.start(*FAST)
        term.until("frames")
        assert term.of_programs("#{alternate_on}") == "1"
        if isinstance(end, signal.Signals):
            os.kill(running_top(), end)
        else:
            term.press("x" if end == "exception" else end)
        screen = term.until(f"exit {code}")
        assert "before" in screen
        assert "Traceback" not in screen
        assert ("no room for a screen" in screen) == (end == "exception")
        assert is_restored(term)


def running_top() -> int:
    """The pid of the top of this test, told from others by its directory."""
    folder = os.environ["QUEUEDUCT_DIR"]
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                mine = f"QUEUEDUCT_DIR={folder}".encode() in file.read().split(b"\0")
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if mine and COMMAND.encode() in words[:3] and b"top" in words:
            return int(pid)
    raise AssertionError("top does not run")


@in_a_terminal
def test_no_color_means_no_color(queues):
    for given, has_color in (({}, True), ({"NO_COLOR": "1"}, False)):
        with terminal(120, **given) as term:
            term.start(*FAST)
            term.until("frames")
            colors = re.findall(r"\x1b\[(?:\d+;)*(?:3[0-7]|4[0-7]|38|48|9\d)[;\dm]", term.styled())
            assert bool(colors) == has_color


@in_a_terminal
def test_a_terminal_that_changes_its_size_is_filled_anew(queues):
    with terminal(200) as term:
        term.start(*FAST)
        term.until("recovered/lost")
        term.resize(70, 20)
        term.until(lambda screen: "recovered/lost" not in screen and "frames" in screen)
        term.resize(200, 30)
        term.until("recovered/lost")


def test_without_a_terminal_one_table_is_printed_after_one_interval(queues):
    began = time.monotonic()
    result = call(*FAST)
    assert time.monotonic() - began >= 0.1
    assert result.exit_code == 0, result.output
    head, *rows = result.output.splitlines()
    assert head.split()[:4] == ["queue", "kind", "depth", "in/s"]
    assert [row.split()[0] for row in rows] == sorted(queues)
    assert "\x1b" not in result.output


def test_names_and_errors_write_nothing_but_text_to_the_terminal(queue_dir):
    """Any process of this user may give a queue a name that would clear the screen, or retitle the window."""
    for name in ("a\x1b[2Jb", "c\nd", "e\udcff", "f\x9bg", "[red]h"):
        queueduct.BoundedQueue.create(name, 4).close()
    (queue_dir / "bad\x1b]0;x\x07").write_bytes((queue_dir / "c\nd").read_bytes()[:64])
    result = call(*FAST)
    assert result.exit_code == 0, result.output
    for expected in ("a�[2Jb", "c�d", "e�", "f�g", "[red]h", "bad�]0;x�"):
        assert expected in result.output
    assert [each for each in result.output if not each.isprintable() and each != "\n"] == []


def test_once_knows_rates_and_statuses_by_its_only_interval(queues, children):
    ticks = queues["ticks"]
    with ticks.subscribe("slow"):
        ticks.put_many([1.0] * 5)
        result = call("top", "--once", "-d", "0.3")
        assert "1 stalled -5" in result.output


def test_lines_of_json_have_everything(queues):
    with queues["ticks"].subscribe("archive"):
        result = call(*FAST, "--once", "--json")
    (line,) = result.output.splitlines()
    found = {queue["name"]: queue for queue in json.loads(line)["queues"]}
    assert set(found) == set(queues)
    assert found["ticks"]["readers"][0]["name"] == "archive"
    assert found["jobs"]["participants"][0]["pid"] == os.getpid()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_lines_of_json_go_on_until_a_signal_and_end_quietly(queues, number):
    with subprocess.Popen(
        [COMMAND, *FAST, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    ) as process:
        for _ in range(3):
            assert json.loads(process.stdout.readline())["queues"]
        process.send_signal(number)
        rest, errors = process.communicate(timeout=20)
    assert process.returncode == 0
    assert errors == ""
    assert all(json.loads(line) for line in rest.splitlines()), "no line is cut"


def test_a_reader_of_the_lines_that_goes_away_ends_it_quietly(queues):
    done = subprocess.run(
        ["bash", "-c", f"{COMMAND} top -d 0.05 --json | head -n 2 | wc -l; exit ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment(),
        check=False,
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "2", "")


def test_a_missing_directory_is_one_clear_line(tmp_path):
    result = call("top", "--directory", str(tmp_path / "missing"))
    assert result.exit_code == 1
    assert result.output.startswith("Error: ")
    assert "missing" in result.output


def test_sorting_puts_the_most_first(queues):
    names = lambda sort: [line.split()[0] for line in call(*FAST, "--sort", sort).output.splitlines()[1:]]  # noqa: E731
    assert names("name") == sorted(queues)
    assert names("depth")[0] == "jobs"
    result = call("top", "--sort", "nonsense")
    assert result.exit_code == 2


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (1, "1"), (0.25, "0.2"), (9.96, "10.0"), (12.4, "12"), (999, "999"), (999.6, "1.00k"), (1234, "1.23k"),
     (99_400, "99.4k"), (99_951, "100k"), (1.25e6, "1.25M"), (4e12, "4.00T"), (4e16, "40000T")],
)  # fmt: skip
def test_counts_are_short(number, text):
    assert count(number) == text


def test_ages_and_memory_are_short_at_every_size():
    assert [age(seconds) for seconds in (0, 0.0123, 0.9996, 9.96, 99, 100, 5970, 86400 * 40)] == [
        "0 ms", "12 ms", "1.0 s", "10 s", "99 s", "2 min", "2 h", "40 d"]  # fmt: skip
    assert age(3, is_longer=True) == ">3.0 s"
    assert [memory(size) for size in (0, 999, 1000, 65536, 999_600, 5e9)] == [
        "0 B", "999 B", "1.0 kB", "65.5 kB", "1.0 MB", "5.0 GB"]  # fmt: skip


def test_a_bar_shows_anything_above_nothing_and_never_more_than_all():
    assert bar(0, 4) == "    "
    assert bar(1e-9, 4).strip() == "▏"
    assert bar(0.5, 4) == "██  "
    assert bar(1, 4) == bar(7, 4) == "████"
