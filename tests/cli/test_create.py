"""create: every option of every kind, and what is wrong with one that does not fit."""

from __future__ import annotations

import inspect
import json

import numpy as np
import pytest

import queueduct
from queueduct.cli.create import create
from queueduct.segments.kinds import KINDS
from tests.support.command import call, done, refused
from tests.support.kinds import CLASSES

OPTIONS = {
    "bounded": {"capacity": "2k", "slot-bytes": "128", "participants": "16", "producers": "4"},
    "growing": {
        "first-bytes": "8k",
        "steps": "4",
        "slot-bytes": "32",
        "max-bytes": "4M",
        "participants": "16",
        "producers": "4",
    },
    "overwriting": {"capacity": "20", "message-bytes": "72", "participants": "16"},
    "slots": {"capacity": "4", "slot-bytes": "1M", "participants": "16", "producers": "4"},
    "events": {
        "max-bytes": "8M",
        "on-full": "drop_slowest",
        "first-items": "8",
        "item-bytes": "100",
        "chunk-bytes": "64k",
        "readers": "3",
        "producers": "5",
        "participants": "16",
        "sync": "never",
        "sync-interval": "500ms",
    },
}


def sizes(name):
    with queueduct.watch(name) as watch:
        return watch.kind, watch.item, watch.sizes


@pytest.mark.parametrize("kind", CLASSES)
def test_every_option_of_a_kind_can_be_given(kind):
    given = [word for option, value in OPTIONS[kind].items() for word in (f"--{option}", value)]
    row = json.loads(done("create", "q", kind, *given, "--json"))
    assert (row["name"], row["kind"], row["item"]) == ("q", kind, "bytes")
    numbers = {"2k": 2000, "8k": 8192, "64k": 65536, "4M": 4 << 20, "8M": 8 << 20, "1M": 1 << 20}
    options = {
        name.replace("-", "_"): numbers.get(text) or (int(text) if text.isdecimal() else text)
        for name, text in OPTIONS[kind].items()
    }
    if kind == "events":
        options["sync_interval"] = 0.5
    CLASSES[kind].create("same", **options).close()
    assert sizes("q") == sizes("same")


@pytest.mark.parametrize("kind", CLASSES)
def test_the_command_knows_every_option_that_the_kind_has(kind):
    ours = {option.name for option in create.params}
    assert {*inspect.signature(KINDS[kind].queue_class.create).parameters} <= ours
    assert {name.replace("-", "_") for name in OPTIONS[kind]} == {
        *inspect.signature(KINDS[kind].queue_class.create).parameters
    } - {"name", "item", "directory", "exist_ok", "replace"}


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("item", ["bytes", "object", "sym:S8, px:f8", "(3,2)f4"])
def test_a_queue_like_another_has_its_shape(kind, item):
    given = [] if item in ("bytes", "object") else ["--item", item]
    others = ("slot-bytes", "message-bytes", "item-bytes")
    options = {name: value for name, value in OPTIONS[kind].items() if item == "bytes" or name not in others}
    done("create", "q", kind, *given, *[word for name, value in options.items() for word in (f"--{name}", value)])
    done("create", "like", "--like", "q")
    assert sizes("like") == sizes("q")
    done("create", "plain", kind, "--item", item)
    done("create", "like-plain", kind, "--like", "plain")
    assert sizes("like-plain") == sizes("plain")


def test_a_queue_like_another_may_differ_in_what_is_given():
    done("create", "jobs", "bounded", "--slot-bytes", "500", "--capacity", "7")
    done("create", "ticks", "--like", "jobs", "--item", "px:f8", "--capacity", "9")
    with queueduct.open("ticks") as ticks:
        assert (ticks.capacity, ticks.item, ticks.stats().slot_bytes) == (9, np.dtype([("px", "f8")]), 8)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("q",), "a queue needs a kind: add one of bounded, growing, overwriting, slots, events, or --like"),
        (("q", "bounded", "--max-bytes", "1M"), "a queue of kind bounded has no --max-bytes: leave it out; it has"),
        (("q", "bounded", "--capacity", "0"), "capacity must be at least 1: capacity=0; try 1"),
        (("q", "bounded", "--capacity", "1.5"), "'1.5' is no whole number; 100, 10k and 2.5M are"),
        (("q", "bounded", "--capacity", "-1"), "'-1' is no whole number"),
        (("q", "events", "--max-bytes", "1 furlong"), "'1 furlong' is no whole number; 4096, 64k, 256M (256 MiB)"),
        (("q", "events", "--sync-interval", "soon"), "'soon' is no time; 5, 0.5, 500ms, 2m and 1h are"),
        (("q", "bounded", "--item", "px:f8 sym:S8"), "a field is a name, a colon and a type"),
        (("q", "bounded", "--item", "px:float7"), "numpy has no type of this name: 'float7'"),
        (("q", "bounded", "--item", "a:f8, a:f8"), "'a' comes twice; rename one"),
        (("q", "bounded", "--item", "a:O"), "field 'a' holds Python objects"),
        (("q", "bounded", "--replace", "--exist-ok"), "exclude each other"),
        (("a/b", "bounded"), "a queue's name must not contain '/'"),
        (("q", "bounded", "--item", "f8", "--slot-bytes", "9"), "slot_bytes of records is the dtype's itemsize"),
    ],
)
def test_what_cannot_be_is_refused_as_wrong_usage(arguments, why):
    assert why in " ".join(refused("create", *arguments).split())
    assert queueduct.queues() == []


def test_a_name_that_is_taken_stays_unless_it_is_to_be_replaced():
    done("create", "q", "bounded", "--capacity", "3")
    why = refused("create", "q", "bounded", "--capacity", "3", code=1)
    assert "exists: --exist-ok takes it if it has the same shape, --replace gives its name" in why
    assert "q: bounded, bytes, in" in done("create", "q", "bounded", "--capacity", "3", "--exist-ok")
    assert "is of another shape" in refused("create", "q", "bounded", "--capacity", "4", "--exist-ok", code=1)
    done("create", "q", "events", "--replace")
    assert [info.kind for info in queueduct.queues()] == ["events"]
    assert "is of its kind, events" in refused("create", "r", "bounded", "--like", "q")
    assert call("create", "r", "--like", "missing").exit_code == 1
    assert "missing" in call("create", "r", "--like", "missing").stderr


@pytest.mark.parametrize(
    ("text", "number"), [("1k", 1024), ("1K", 1024), ("1kib", 1024), ("1kB", 1000), ("1_000", 1000), ("0.5M", 1 << 19)]
)
def test_sizes_have_units(text, number):
    done("create", "q", "growing", "--slot-bytes", text)
    assert sizes("q")[2]["slot_bytes"] == number


def test_the_directory_is_that_of_the_program_or_of_the_command(tmp_path):
    done("--dir", tmp_path / "a", "create", "q", "bounded")
    done("--dir", tmp_path / "a", "create", "q", "bounded", "--directory", tmp_path / "b")
    assert [info.name for info in queueduct.queues(directory=tmp_path / "a")] == ["q"]
    assert [info.name for info in queueduct.queues(directory=tmp_path / "b")] == ["q"]
    assert "q" in done("--directory", tmp_path / "b", "ls")
    assert queueduct.queues() == []
