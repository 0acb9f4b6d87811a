"""get and tail: what comes out, in which form, and that nothing is lost on the way."""

from __future__ import annotations

import json

import numpy as np
import pytest

import queueduct
from tests.support.command import call, done, refused
from tests.support.kinds import CLASSES

TICK = np.dtype([("sym", "S8"), ("px", "f8"), ("at", [("x", "i4"), ("y", "i4")])])
CONSUMED = [kind for kind in CLASSES if kind != "events"]


@pytest.fixture
def jobs():
    with queueduct.BoundedQueue.create("jobs", 64) as made:
        made.put_many([b"a", b"b", b"\xff"])
        yield made


@pytest.fixture
def ticks():
    with queueduct.EventQueue.create("ticks", item=TICK) as made:
        made.put_many([(b"S%d" % i, i / 2, (i, -i)) for i in range(20)])
        yield made


def test_get_takes_one_item_and_n_takes_more(jobs):
    assert done("get", "jobs") == '"a"\n'
    assert done("get", "jobs", "-n", "2") == '"b"\n{"base64": "/w=="}\n'
    assert jobs.stats().items_got == 3


@pytest.mark.parametrize("kind", CONSUMED)
def test_items_of_every_kind_come_out_of_it(kind):
    with CLASSES[kind].create("q", item=TICK) as queue:
        queue.put_many([(b"A", 0.5, (1, 2)), (b"B", 1.5, (3, 4))])
        assert [json.loads(line) for line in done("get", "q", "--available").splitlines()] == [
            {"sym": "A", "px": 0.5, "at": {"x": 1, "y": 2}},
            {"sym": "B", "px": 1.5, "at": {"x": 3, "y": 4}},
        ]
        assert (queue.qsize(), queue.stats().items_got, done("get", "q", "--available")) == (0, 2, "")


def test_the_time_is_up_with_exit_code_3_and_what_came_is_written(jobs):
    result = call("get", "jobs", "-n", "5", "--timeout", "0.05")
    assert (result.exit_code, len(result.stdout.splitlines())) == (3, 3)
    assert result.stderr == "Error: nothing more came within 0.05 s; 3 items written\n"
    assert call("get", "jobs", "--timeout", "0").exit_code == 3


def test_the_end_of_a_queue_ends_get(jobs):
    jobs.shutdown()
    assert len(done("get", "jobs", "-n", "9").splitlines()) == 3
    assert refused("get", "jobs", code=1) == "the queue 'jobs' is shut down, and empty"
    assert done("get", "jobs", "--follow") == ""


def test_a_file_says_its_format_and_is_never_replaced_unasked(jobs, tmp_path):
    assert "a file's name must say its format: 'x'" in refused("get", "jobs", "-o", tmp_path / "x")
    done("get", "jobs", "-o", tmp_path / "x", "--format", "lines")
    assert (tmp_path / "x").read_text() == "a\n"
    assert "--overwrite replaces it" in refused("get", "jobs", "-o", tmp_path / "x", "--format", "csv", code=1)
    assert jobs.qsize() == 2
    done("get", "jobs", "-n", "2", "-o", tmp_path / "x", "--format", "csv", "--overwrite")
    assert (tmp_path / "x").read_text() == "value\nb\nbase64:/w==\n"
    assert [path.name for path in tmp_path.iterdir()] == ["x"], "and no hidden file is left"


def test_items_leave_the_queue_only_with_their_file(jobs, tmp_path):
    """The items are written, and the file cannot be completed: the last of them has no line."""
    jobs.put(b"two\nlines")
    told = refused("get", "jobs", "-n", "4", "-o", tmp_path / "x.txt", code=1)
    assert "must not have a newline" in told
    assert list(tmp_path.iterdir()) == []
    assert (jobs.qsize(), jobs.stats().leased, jobs.stats().items_got) == (4, 0, 0)
    assert sorted(jobs.get() for _ in range(4)) == [b"a", b"b", b"two\nlines", b"\xff"]


def test_items_that_nobody_could_read_are_still_there(jobs):
    assert call("get", "jobs", "-n", "3", "--format", "parquet", "-o", "/dev/full").exit_code == 1
    assert call("get", "jobs", "-o", "/dev/full", "--format", "jsonl").exit_code == 1
    assert (jobs.qsize(), jobs.stats().items_got) == (3, 0)


def test_what_a_file_cannot_hold_is_refused_before_anything_is_taken(jobs, tmp_path):
    assert "--follow has no end" in refused("get", "jobs", "-f", "-o", tmp_path / "x.csv")
    assert "n=65, capacity=64" in refused("get", "jobs", "-n", "65", "-o", tmp_path / "x.csv")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--available", "--follow"), "--available never waits"),
        (("--lease",), "are for --exec: give a command"),
        (("--exec", "true", "-o", "x.csv"), "leave -o and --format out"),
        (("--exec", "true", "--retries", "2"), "--retries is for --lease"),
        (("--exec", "true", "--lease", "--dead-letters", "d"), "say how many"),
        (("--exec", "no-such-program-here {}"), "--exec must begin with a program"),
        (("--exec", "echo 'a"), "--exec must be a command"),
        (("-n", "0"), "is less than 1"),
    ],
)
def test_what_makes_no_sense_is_refused_and_takes_nothing(jobs, arguments, why):
    assert why in " ".join(refused("get", "jobs", *arguments).split())
    assert jobs.qsize() == 3


def test_a_log_is_not_taken_from_and_a_queue_has_no_tail(jobs, ticks):
    assert "queueduct tail ticks --reader NAME" in refused("get", "ticks")
    assert "queueduct get jobs takes items out of it" in refused("tail", "jobs")


def test_objects_are_shown_as_json_or_by_their_repr():
    with queueduct.GrowingQueue.create("things", item=object) as things:
        things.put_many([{"a": [1, None]}, {1, 2}, b"x"])
        assert done("get", "things", "-n", "3").splitlines() == ['{"a": [1, null]}', '{"repr": "{1, 2}"}', '"x"']


# -- tail ------------------------------------------------------------------------------------------------


def numbers(text):
    return [json.loads(line)["at"]["x"] for line in text.splitlines()]


def test_tail_shows_the_last_items_and_no_reader_notices(ticks):
    reader = ticks.subscribe("lake", start="earliest")
    before = ticks.stats()
    assert numbers(done("tail", "ticks")) == list(range(10, 20))
    assert numbers(done("tail", "ticks", "-n", "2")) == [18, 19]
    assert numbers(done("tail", "ticks", "-n", "999")) == list(range(20))
    assert numbers(done("tail", "ticks", "--from", "3", "--to", "6")) == [3, 4, 5]
    assert numbers(done("tail", "ticks", "--from", "earliest", "-n", "2")) == [0, 1]
    assert numbers(done("tail", "ticks", "--to", "5", "-n", "2")) == [3, 4]
    assert done("tail", "ticks", "--from", "latest") == ""
    assert ticks.stats() == before
    assert (reader.position, len(ticks.readers())) == (0, 1)


def test_tail_chooses_fields(ticks, tmp_path):
    assert done("tail", "ticks", "-n", "1", "--fields", "at.y, sym") == '{"at.y": -19, "sym": "S19"}\n'
    assert done("tail", "ticks", "-n", "1", "--fields", "at") == '{"at": {"x": 19, "y": -19}}\n'
    done("tail", "ticks", "--fields", "px,sym", "-o", tmp_path / "x.csv", "-n", "2")
    assert (tmp_path / "x.csv").read_text() == "px,sym\n9.0,S18\n9.5,S19\n"
    assert "there is no field 'qty'; the records have sym, px, at" in refused("tail", "ticks", "--fields", "px,qty")
    assert "names each field once" in refused("tail", "ticks", "--fields", "px,px")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--to", "21"), "--to is at most the end of the log, 20"),
        (("--from", "21"), "--from is at most --to, and at most the end of the log, 20"),
        (("--from", "x"), "--from is a position, earliest or latest: 'x'"),
        (("--to", "3", "--follow"), "leave one of them out"),
        (("--timeout", "1"), "--timeout is for --follow and --reader"),
        (("--reader", "lake"), "has no durable reader 'lake', it has none; --from earliest or latest makes it"),
    ],
)
def test_positions_that_are_not_there_are_refused(ticks, arguments, why):
    assert why in " ".join(refused("tail", "ticks", *arguments).split())


def test_what_is_no_longer_kept_is_said_with_what_is(ticks):
    ticks.keep_last(5)
    told = refused("tail", "ticks", "--from", "3", "--to", "18", code=1)
    assert "no longer keeps position 3; --from earliest begins at 15" in told
    assert numbers(done("tail", "ticks")) == list(range(15, 20))


def test_a_durable_reader_goes_on_where_it_has_committed(ticks, tmp_path):
    assert numbers(done("tail", "ticks", "--reader", "lake", "--from", "earliest", "-n", "3")) == [0, 1, 2]
    assert numbers(done("tail", "ticks", "--reader", "lake", "-n", "2")) == [3, 4]
    done("tail", "ticks", "--reader", "lake", "-o", tmp_path / "x.jsonl")
    assert numbers((tmp_path / "x.jsonl").read_text()) == list(range(5, 20))
    assert done("tail", "ticks", "--reader", "lake") == ""
    (reader,) = ticks.readers()
    assert (reader.name, reader.committed, reader.is_attached) == ("lake", 20, False)
    assert "leave --from out" in refused("tail", "ticks", "--reader", "lake", "--from", "0")


def test_a_durable_reader_whose_file_could_not_be_written_has_committed_nothing(ticks):
    done("tail", "ticks", "--reader", "lake", "--from", "earliest", "-n", "3")
    assert call("tail", "ticks", "--reader", "lake", "-o", "/dev/full", "--format", "jsonl").exit_code == 1
    assert [reader.committed for reader in ticks.readers()] == [3]


def test_following_ends_with_the_log_or_with_the_time(ticks):
    result = call("tail", "ticks", "--follow", "--timeout", "0.05", "-n", "2")
    assert (result.exit_code, numbers(result.stdout)) == (3, [18, 19])
    assert "nothing came for 0.05 s; 2 items written" in result.stderr
    result = call("tail", "ticks", "--reader", "lake", "--from", "18", "--follow", "--timeout", "0.05")
    assert (result.exit_code, numbers(result.stdout)) == (3, [18, 19])
    assert [reader.committed for reader in ticks.readers()] == [20]
    ticks.shutdown()
    assert numbers(done("tail", "ticks", "--follow", "-n", "1")) == [19]
    assert numbers(done("tail", "ticks", "--from", "15", "--follow", "-n", "2")) == [15, 16]
