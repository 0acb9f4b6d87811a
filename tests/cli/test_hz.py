"""``queueduct hz``: the rate of one queue, line by line."""

from __future__ import annotations

import json
import signal
import subprocess
import time

import pytest
from click.testing import CliRunner

import queueduct
from queueduct.cli import main
from tests.support.children import environment
from tests.support.terminal import COMMAND


def call(*arguments):
    return CliRunner().invoke(main, ["hz", *arguments])


@pytest.fixture
def feed(children):
    """A feed that a process puts to all the time, and a log that it reads on in."""
    with (
        queueduct.OverwritingQueue.create("feed", 64, item="f8") as q,
        queueduct.EventQueue.create("ticks", item="f8") as log,
        log.subscribe("archive"),
    ):

        def put_for_ever():
            mine, ticks = queueduct.open("feed"), queueduct.EventQueue.open("ticks")
            reader = ticks.subscribe("mover")
            while True:
                mine.put(1.0)
                ticks.put(1.0)
                reader.get()
                reader.commit()
                time.sleep(0.001)

        children.fork(put_for_ever)
        with queueduct.watch("ticks") as watch:
            while watch.stats().items_put < 10:
                time.sleep(0.001)
        yield q


def test_the_rate_is_what_is_put_a_second(feed):
    before, at = feed.stats().items_put, time.monotonic()
    result = call("feed", "-d", "0.1", "-n", "4", "--json")
    most = (feed.stats().items_put - before) / 0.4
    rows = [json.loads(line) for line in result.output.splitlines()]
    assert len(rows) == 4
    assert time.monotonic() - at >= 0.4
    for number, row in enumerate(rows, 1):
        assert (row["queue"], row["what"]) == ("feed", "in")
        assert row["rate"] > 0
        assert row["least"] <= row["mean"] <= row["most"]
        assert row["window_seconds"] >= 0.1 * number
    assert sum(row["items"] for row in rows) / 0.4 <= most
    assert rows[-1]["mean"] == pytest.approx(sum(row["items"] for row in rows) / rows[-1]["window_seconds"])


def test_the_window_ends_where_it_was_asked_to(feed):
    rows = [
        json.loads(line)
        for line in call("feed", "-d", "0.05", "--window", "0.1", "-n", "5", "--json").output.splitlines()
    ]
    assert rows[-1]["mean"] == pytest.approx((rows[-1]["rate"] + rows[-2]["rate"]) / 2, rel=0.5)
    assert {rows[-1]["least"], rows[-1]["most"]} == {rows[-1]["rate"], rows[-2]["rate"]}


def test_a_reader_is_followed_and_one_that_stops_has_no_rate(feed):
    moving = json.loads(call("ticks", "--reader", "mover", "-d", "0.2", "-n", "1", "--json").output)
    still = json.loads(call("ticks", "--reader", "archive", "-d", "0.2", "-n", "1", "--json").output)
    assert (moving["what"], still["what"]) == ("reader mover", "reader archive")
    assert moving["rate"] > 0
    assert (still["rate"], still["items"]) == (0, 0)
    out = json.loads(call("ticks", "--out", "-d", "0.2", "-n", "1", "--json").output)
    assert out["rate"] > 0


def test_a_line_for_people_has_the_rate_and_the_window(feed):
    result = call("feed", "-d", "0.1", "--duration", "0.25")
    lines = result.output.splitlines()
    assert len(lines) == 3, "the last one is of what was left of the time"
    assert all(line.startswith("in ") and "/s    mean " in line and " over " in line for line in lines)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("nope",), 1, "no queue named 'nope'"),
        (("feed", "--reader", "x"), 1, "only an event queue has readers"),
        (("ticks", "--reader", "x"), 1, "'archive'"),
        (("ticks", "--reader", "x", "--out"), 2, "exclude each other"),
        (("feed", "-d", "0"), 2, "out of its range"),
        (("feed", "-n", "0"), 2, "is less than 1"),
    ],
)
def test_what_cannot_be_shown_is_one_clear_line(arguments, code, says):
    with queueduct.OverwritingQueue.create("feed", 4), queueduct.EventQueue.create("ticks") as q:
        q.subscribe("archive").close()
        result = call(*arguments)
    assert (result.exit_code, says in result.output, "Traceback" in result.output) == (code, True, False), result.output


def test_it_ends_when_the_queue_is_removed():
    with (
        queueduct.BoundedQueue.create("jobs", 4) as q,
        subprocess.Popen(
            [COMMAND, "hz", "jobs", "-d", "0.05"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        ) as process,
    ):
        assert process.stdout.readline().startswith("in ")
        q.unlink()
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 1
    assert errors == "Error: the queue 'jobs' was removed, or replaced by another\n"


@pytest.mark.parametrize(
    ("number", "more"), [(signal.SIGINT, ()), (signal.SIGTERM, ()), (signal.SIGINT, ("-n", "999")),
                         (signal.SIGTERM, ("--duration", "1h"))]
)  # fmt: skip
def test_a_signal_ends_it_without_a_traceback_and_is_its_end_if_it_has_no_other(number, more):
    with (
        queueduct.BoundedQueue.create("jobs", 4),
        subprocess.Popen(
            [COMMAND, "hz", "jobs", "-d", "50ms", *more],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        ) as process,
    ):
        process.stdout.readline()
        process.send_signal(number)
        _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (
        (128 + number, f"stopped by {'Ctrl-C' if number == signal.SIGINT else 'SIGTERM'}\n") if more else (0, "")
    )
