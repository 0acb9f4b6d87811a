"""The command: what a person and a script see."""

import json

import numpy as np
import pytest

import queueduct
from tests.support.command import call
from tests.support.kinds import CLASSES


def shown(name, *more):
    """The row that `stat --json` prints, without what only it has."""
    row = json.loads(call("stat", name, *more, "--json").output)
    assert row.pop("details").keys() == {"readers", "producers", "participants"}
    return row


def test_help_has_examples():
    result = call("--help")
    assert result.exit_code == 0
    assert "queueduct stat ticks --json" in result.output
    for command in ("ls", "stat", "rm", "queue-demo"):
        assert "Example" in call(command, "--help").output


def test_an_empty_directory_says_so():
    assert "no queues here" in call("ls").output
    assert json.loads(call("ls", "--json").output) == []


def test_ls_shows_name_kind_item_and_size():
    with queueduct.BoundedQueue.create("ticks", 16, item="f8") as queue:
        queue.put_many([1.0, 2.0, 3.0])
        assert "ticks" in call("ls").output
        (row,) = json.loads(call("ls", "--json").output)
    assert (row["name"], row["kind"], row["item"], row["size"], row["capacity"]) == (
        "ticks",
        "bounded",
        "f8",
        3,
        16,
    )


def test_ls_shows_queues_of_every_kind_beside_each_other():
    with queueduct.BoundedQueue.create("jobs", 16) as jobs, queueduct.EventQueue.create("ticks", item="f8") as ticks:
        jobs.put(b"a")
        ticks.put_many([1.0, 2.0])
        ticks.shutdown()
        table = call("ls")
        rows = json.loads(call("ls", "--json").output)
    assert table.exit_code == 0, table.output
    header, *lines = table.output.splitlines()
    assert header.split() == ["name", "kind", "item", "items", "memory", "participants", "readers"]
    assert [line.split()[:4] for line in lines] == [
        ["jobs", "bounded", "bytes", "1"],
        ["ticks", "events", "f8", "2"],
    ]
    assert [line.endswith("shut down") for line in map(str.rstrip, lines)] == [False, True]
    assert [(row["name"], row["kind"], row["size"]) for row in rows] == [("jobs", "bounded", 1), ("ticks", "events", 2)]


def test_ls_shows_names_whole_and_items_in_short():
    name = "a-name-that-takes-up-more-than-half-of-a-terminal"
    record = np.dtype([("symbol", "S16"), ("price", "f8"), ("time", "M8[us]"), ("flag", "?")])
    with (
        queueduct.BoundedQueue.create(name, 16, item=record),
        queueduct.SlotQueue.create("camera", 2, item=np.dtype(("f4", (480, 640)))),
        queueduct.EventQueue.create("gaps", item=np.dtype([("a", "i1"), ("b", "i8")], align=True)),
    ):
        _, *lines = call("ls").output.splitlines()
        assert [line.split("  ")[0] for line in lines] == [name, "camera", "gaps"]
        assert ["4 fields, 33 B" in lines[0], "480x640 f4" in lines[1], "2 fields, 16 B" in lines[2]] == [True] * 3
        assert "time:M8[us]" in call("stat", name).output


def test_in_a_terminal_what_is_too_long_goes_on_below_its_beginning(children):
    """In a real one: a pseudo-terminal of 60 columns."""
    queueduct.EventQueue.create("ticks", item=np.dtype([(f"field_{i}", "f8") for i in range(8)])).close()
    told = children.run(
        "import os, pty, sys\n"
        "os.environ['COLUMNS'] = '60'\n"
        "pty.spawn([sys.executable, '-c', 'from queueduct.cli import main; main()', 'stat', 'ticks'])"
    )
    item, *rest = told[told.index("item ") : told.index("size ")].replace("\r", "").splitlines()
    start = item.index("field_0")
    assert rest, "it takes more than one line"
    assert all(len(line) <= 60 for line in (item, *rest))
    assert all(line[:start].isspace() and not line[start].isspace() for line in rest)


def test_a_queue_that_cannot_be_looked_at_does_not_hide_the_others(monkeypatch):
    really_watch = queueduct.watch

    def watch_some(name, *, directory):
        if name == "broken":
            raise queueduct.CorruptSegment("it broke after it was listed")
        return really_watch(name, directory=directory)

    monkeypatch.setattr(queueduct, "watch", watch_some)
    with queueduct.BoundedQueue.create("jobs", 16), queueduct.EventQueue.create("broken"):
        result = call("ls")
        rows = json.loads(call("ls", "--json").output)
    assert result.exit_code == 0
    assert "jobs" in result.output
    assert result.output.splitlines()[-1] == "broken: it broke after it was listed"
    assert "it broke" in next(row["error"] for row in rows if row["name"] == "broken")


@pytest.mark.parametrize("kind", CLASSES)
def test_who_looks_at_a_queue_is_no_participant_of_it(kind):
    CLASSES[kind].create("q", item="f8", participants=1).close()
    for _ in range(2):
        assert json.loads(call("stat", "q", "--json").output)["participants"] == 0
    with queueduct.open("q") as queue:
        assert [queue.stats().participants for _ in range(2)] == [0, 0]
        queue.put(1.5)
        assert queue.stats().participants == 1
        assert json.loads(call("stat", "q", "--json").output)["participants"] == 1


def test_stat_shows_the_counters():
    with queueduct.BoundedQueue.create("jobs", 16) as queue:
        queue.put_many([b"a", b"b"])
        queue.get()
        row = json.loads(call("stat", "jobs", "--json").output)
        assert (row["push_position"], row["pop_position"], row["size"]) == (2, 1, 1)
        assert "push_position" in call("stat", "jobs").output


@pytest.mark.parametrize("kind", CLASSES)
def test_every_kind_is_listed_shown_and_removed(kind):
    with CLASSES[kind].create(f"some-{kind}", item="f8") as queue:
        queue.put(1.5)
        assert f"some-{kind}" in call("ls").output
        (row,) = json.loads(call("ls", "--json").output)
        assert (row["kind"], row["item"], row["size"]) == (kind, "f8", 1)
        assert row == shown(f"some-{kind}")
        assert "kind" in call("stat", f"some-{kind}").output
        assert call("rm", f"some-{kind}").output == f"removed some-{kind}\n"
    assert queueduct.queues() == []


def test_the_losses_of_an_overwriting_queue_are_shown():
    with queueduct.OverwritingQueue.create("feed", 4, item="i8") as feed:
        feed.put_many(range(10))
        feed.lease(2).give_back()
        row = shown("feed")
        assert (row["puts"], row["overwritten"], row["torn"], row["lost_with_consumer"]) == (10, 6, 0, 0)
        assert (row["gets"], row["size"], row["discarded"]) == (0, 4, 0)  # what was given back is to be got again
        assert json.loads(call("ls", "--json").output) == [row]
        told = dict(line.split() for line in call("stat", "feed").output.partition("\n\n")[0].splitlines())
        assert told["overwritten"] == "6"
        assert json.loads(call("rm", "feed", "--json").output) == [row]
    assert queueduct.queues() == []


def test_a_queue_that_cannot_be_read_can_be_removed(queue_dir):
    queueduct.BoundedQueue.create("broken", 2).close()
    (queue_dir / "broken").write_bytes(b"nonsense")
    (row,) = json.loads(call("rm", "broken", "--json").output)
    assert row["name"] == "broken"
    assert row["error"]
    assert not (queue_dir / "broken").exists()


def test_rm_removes_the_name():
    queueduct.BoundedQueue.create("old", 2).close()
    assert "removed old" in call("rm", "old").output
    assert queueduct.queues() == []


@pytest.mark.parametrize("kind", CLASSES)
def test_rm_as_json_says_what_each_kind_had_counted(kind):
    with CLASSES[kind].create(f"some-{kind}", item="f8") as queue:
        queue.put_many([1.5, 2.5])
        row = shown(f"some-{kind}")
        result = call("rm", f"some-{kind}", "--json")
    assert result.exit_code == 0
    assert json.loads(result.output) == [row]
    assert (row["kind"], row["size"]) == (kind, 2)
    assert queueduct.queues() == []


def test_rm_removes_the_others_where_one_is_missing():
    for name in ("a", "b"):
        queueduct.BoundedQueue.create(name, 2).close()
    result = call("rm", "a", "missing", "b/c", "b")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == ["removed a", "removed b"]
    missing, bad = result.stderr.splitlines()
    assert missing.startswith("Error: ")
    assert "'missing'" in missing
    assert "'b/c'" in bad
    assert queueduct.queues() == []


def test_rm_as_json_says_what_was_removed_and_what_failed():
    for name in ("a", "b"):
        queueduct.BoundedQueue.create(name, 2).close()
    result = call("rm", "a", "missing", "b", "--json")
    assert result.exit_code == 1
    rows = json.loads(result.stdout)
    assert [row["name"] for row in rows] == ["a", "missing", "b"]
    assert ["failed" in row for row in rows] == [False, True, False]
    assert "missing" in rows[1]["failed"]
    assert queueduct.queues() == []


@pytest.mark.parametrize("arguments", [("stat", "nope"), ("rm", "nope"), ("stat", "a/b")])
def test_a_bad_name_is_one_clear_line_and_no_traceback(arguments):
    result = call(*arguments)
    assert result.exit_code == 1
    assert result.output.startswith("Error: ")
    assert "Traceback" not in result.output


@pytest.mark.parametrize("kind", CLASSES)
def test_queues_of_another_directory_are_listed_shown_and_removed(kind, tmp_path):
    there = ("--directory", str(tmp_path))
    with CLASSES[kind].create("q", item="f8", directory=tmp_path) as queue:
        queue.put(1.5)
        assert "no queues here" in call("ls").output
        assert call("stat", "q").exit_code == call("rm", "q").exit_code == 1
        assert call("ls", *there).output.splitlines()[1].split()[:4] == ["q", kind, "f8", "1"]
        (row,) = json.loads(call("ls", *there, "--json").output)
        now = shown("q", *there)
        moving = ("synced", "resident_bytes")  # a log on a disk is synced meanwhile
        assert [value for name, value in now.items() if name not in moving] == [
            value for name, value in row.items() if name not in moving
        ]
        assert call("rm", "q", *there).output == "removed q\n"
    assert list(tmp_path.iterdir()) == []


def test_a_bad_directory_is_one_clear_line_and_no_traceback(tmp_path):
    (tmp_path / "file").write_text("")
    for name, why in (("missing", "there is no directory"), ("file", "is not a directory")):
        result = call("ls", "--directory", str(tmp_path / name))
        assert result.exit_code == 1
        assert result.output.startswith("Error: ")
        assert why in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.slow
def test_the_demo_accounts_for_every_item_and_leaves_nothing_behind():
    result = call("queue-demo", "--seconds", "2", "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.output)
    assert report["ok"]
    assert report["items"] > 0
    assert len(report["killed"]) == 1
    assert queueduct.queues() == []
