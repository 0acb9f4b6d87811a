"""What a C++ program refuses to open, with the rule, the value and a remedy that works."""

from __future__ import annotations

import ast
import os
import re

import numpy as np
import pytest

import queueduct
from tests.cpp.test_puts import BOOK
from tests.events.faults import EVENTS
from tests.overwriting.faults import OVERWRITING
from tests.rings.faults import BOUNDED
from tests.spark.rows import TICK
from tests.support.compiled import error_of, run

FAULTS = {"bounded": BOUNDED, "overwriting": OVERWRITING, "events": EVENTS}


def create(item, kind=queueduct.BoundedQueue):
    kind.create("q", **({} if kind is queueduct.EventQueue else {"capacity": 8}), item=item, replace=True).close()


def followed(message):
    """The dtype that a message tells to create the queue with."""
    return np.dtype(ast.literal_eval(re.search(r"item=np\.dtype\((.*)\), or change", message)[1]))


@pytest.mark.parametrize("kind", [queueduct.BoundedQueue, queueduct.EventQueue, queueduct.OverwritingQueue])
@pytest.mark.parametrize(
    ("item", "told"),
    [
        ([("sym", "S8"), ("px", "f8")], "a record must have the 16 bytes of the dtype of 'q': feed::Tick has 32"),
        (
            [("sym", "S8"), ("px", "f8"), ("ts", "M8[ns]"), ("number", "i8")],
            "field ts is '<M8[ns]' in the queue, and '<M",
        ),
        (
            [("sym", "S8"), ("px", "i8"), ("ts", "M8[us]"), ("number", "i8")],
            "field px is '<i8' in the queue, and '<f8'",
        ),
        (
            [("sym", "S8"), ("px", ">f8"), ("ts", "M8[us]"), ("number", "i8")],
            "field px is '>f8' in the queue, and '<f8'",
        ),
        (
            [("sym", "S8"), ("ts", "M8[us]"), ("px", "f8"), ("number", "i8")],
            "field px is at offset 16 in the queue, and at",
        ),
        ([("sym", "S8"), ("price", "f8"), ("ts", "M8[us]"), ("number", "i8")], "field px is not in the queue"),
        ([("sym", "S8"), ("px", "f4"), ("qty", "f4"), ("ts", "M8[us]"), ("number", "i8")], "field px is '<f4' in the"),
        (
            [("sym", "S8"), ("px", "f8", 1), ("ts", "M8[us]"), ("number", "i8")],
            "field px is ('<f8', (1,)) in the queue",
        ),
        ("S32", "an item is '|S32' in the queue"),
    ],
)
def test_other_records_are_refused_and_the_remedy_works(peer, kind, item, told):
    create(item, kind)
    message = error_of(peer, "put", "q", 0, 1)
    assert message.startswith("WrongType: ")
    assert told in message
    assert followed(message) == TICK
    create(followed(message), kind)
    run(peer, "put", "q", 0, 1)


def test_a_field_that_the_program_does_not_declare_is_refused(peer):
    formats = ["S8", "f8", "M8[us]", "i8", "u1"]
    names = ["sym", "px", "ts", "number", "low"]
    create(np.dtype({"names": names, "formats": formats, "offsets": [0, 8, 16, 24, 24], "itemsize": 32}))
    assert "field low of the queue is not in the program" in error_of(peer, "put", "q", 0, 1)


def test_nested_records_and_arrays_are_compared_too(peer):
    create("f8")
    assert followed(error_of(peer, "open", "q", "book")) == BOOK
    levels = np.dtype([("price", "f8"), ("sizes", "i4", 2)])
    other = {name: list(value) if isinstance(value, list) else value for name, value in BOOK_PARTS.items()}
    other["formats"][6] = (levels, 2)
    create(np.dtype(other))
    assert "field levels.sizes is ('<i4', (2,)) in the queue" in error_of(peer, "open", "q", "book")
    create(BOOK)
    run(peer, "open", "q", "book")


BOOK_PARTS = {
    "names": list(BOOK.names),
    "formats": [BOOK.fields[name][0] for name in BOOK.names],
    "offsets": [BOOK.fields[name][1] for name in BOOK.names],
    "itemsize": BOOK.itemsize,
}


def test_of_a_struct_without_declared_fields_only_the_size_counts(peer):
    create(TICK)
    run(peer, "open", "q", "undeclared")
    create(BOOK)
    message = error_of(peer, "open", "q", "undeclared")
    assert "a record must have the 72 bytes of the dtype of 'q': its record has 32; declare its fields" in message


def test_numbers_alone_are_items_too(peer):
    create("f8")
    run(peer, "open", "q", "double")
    for other in ("f4", "i8", ">f8"):
        create(other)
        assert "WrongType" in error_of(peer, "open", "q", "double")


def test_bytes_objects_and_records_are_not_mistaken_for_each_other(peer):
    create(bytes)
    assert "'q' carries bytes, and the program's items are feed::Tick; create" in error_of(peer, "put", "q", 0, 1)
    create(object)
    assert "'q' carries pickled Python objects" in error_of(peer, "put", "q", 0, 1)
    assert "create it with item=bytes or a dtype" in error_of(peer, "put_bytes", "q", "a")
    create(TICK)
    message = error_of(peer, "put_bytes", "q", "a")
    assert message.startswith("WrongType: 'q' carries records, and the program puts bytes: dtype {'names': ['sym', ")


def test_a_queue_of_another_kind_is_refused(peer):
    create(TICK)
    assert error_of(peer, "open", "q", "events") == "WrongType: 'q' is a queue of kind 'bounded', not 'events'"
    create(TICK, queueduct.EventQueue)
    assert error_of(peer, "open", "q", "overwriting") == "WrongType: 'q' is a queue of kind 'events', not 'overwriting'"
    run(peer, "open", "q", "any")
    queueduct.GrowingQueue.create("g", item=TICK).close()
    queueduct.SlotQueue.create("s", 4, item=TICK).close()
    for name, kind in (("g", "growing"), ("s", "slots")):
        assert error_of(peer, "open", name, "any") == (
            f"WrongType: '{name}' is a queue of kind '{kind}': C++ opens bounded, events and overwriting queues"
        )


def test_names_and_files_that_are_no_queue_are_refused(peer, queue_dir, monkeypatch):
    assert error_of(peer, "open", "none", "any") == f"QueueNotFound: there is no queue named 'none' in {queue_dir}"
    for name, rule in (
        ("", "not be empty"),
        (".q", "not start with a dot"),
        ("a/b", "not contain"),
        ("a" * 256, "be at"),
    ):
        assert f"a queue's name must {rule}" in error_of(peer, "open", name, "any")
    (queue_dir / "folder").mkdir()
    (queue_dir / "link").symlink_to("q")
    os.mkfifo(queue_dir / "fifo")
    (queue_dir / "empty").touch()
    (queue_dir / "short").write_bytes(b"QUEUDUCT" + bytes(99))
    (queue_dir / "text").write_bytes(b"hello" * 200)
    create(TICK)
    (queue_dir / "second").hardlink_to(queue_dir / "q")
    for name, told in {
        "folder": "is a directory, not a segment",
        "link": "is a symbolic link, not a segment",
        "fifo": "is not a regular file",
        "empty": "too short for a header: 0 bytes",
        "short": "too short for a header: 107 bytes",
        "text": "magic must be QUEUDUCT at offset 0",
        "second": "has other hard links: links=2",
    }.items():
        message = error_of(peer, "open", name, "any")
        assert message.startswith("CorruptSegment: ")
        assert told in message
    monkeypatch.setenv("QUEUEDUCT_DIR", str(queue_dir / "nowhere"))
    assert "QueueNotFound" in error_of(peer, "open", "q", "any")


def test_the_hidden_name_that_a_killed_creator_left_is_removed(peer, queue_dir):
    create(TICK)
    (queue_dir / ".new-1").hardlink_to(queue_dir / "q")
    run(peer, "open", "q", "any")
    assert os.listdir(queue_dir) == ["q"]


@pytest.mark.parametrize("kind", FAULTS)
def test_every_wrong_field_is_refused_and_the_file_left_as_it_was(peer, queue_dir, kind):
    faults = FAULTS[kind]
    cases = [(field, value) for field, values in faults.fields.items() for value in values]
    assert len(cases) > 20
    for field, value in cases:
        with faults.make() as q:
            q.put(faults.item)
        with faults.raw("q") as raw:
            raw.set_field(field, value)
            raw.sign() if raw.field("item_text_bytes") < 3000 else None
        before = (queue_dir / "q").read_bytes()
        message = error_of(peer, "open", "q", "any")
        is_kind_that_cpp_does_not_know = field == "kind" and value in (2, 4) and kind != "overwriting"
        told = "WrongType: 'q' is a queue of kind" if is_kind_that_cpp_does_not_know else "CorruptSegment: "
        assert message.startswith(told), (field, value, message)
        assert (queue_dir / "q").read_bytes() == before
        (queue_dir / "q").unlink()


@pytest.mark.parametrize("kind", FAULTS)
def test_a_damaged_checksum_and_a_changed_length_are_refused(peer, queue_dir, kind):
    faults = FAULTS[kind]
    faults.make().close()
    with faults.raw("q") as raw:
        raw.set_field("created_ns", 1)
    assert "checksum must be" in error_of(peer, "open", "q", "any")
    with faults.raw("q") as raw:
        raw.sign()
    for change in (1, -1, -4096):
        size = (queue_dir / "q").stat().st_size
        os.truncate(queue_dir / "q", size + change)
        assert "CorruptSegment" in error_of(peer, "open", "q", "any")
        os.truncate(queue_dir / "q", size)
    assert "WrongType" in error_of(peer, "open", "q", "any"), "its header is sound again"


DTYPES = [
    "f8", ">f8", "?", "i1", "u2", "f2", "c16", "S5", "U3", "V7", "M8[us]", "m8[25s]", "M8[ns]",
    np.dtype(("f4", (2, 3))), BOOK, TICK,
    [("a", [("b", [("c", "i4", (1, 2))], 3)]), ("it's", "u1"), ('say "no"', "S1"), ("é", "f8")],
    np.dtype({"names": ["x"], "formats": ["i4"], "offsets": [4], "itemsize": 12, "titles": ["an x"]}),
]  # fmt: skip


@pytest.mark.parametrize("item", DTYPES, ids=lambda item: str(np.dtype(item))[:30])
def test_the_text_of_every_dtype_is_read_as_python_reads_it(peer, queue_dir, item):
    create(item)
    data = (queue_dir / "q").read_bytes()
    text = data[256 : 256 + int.from_bytes(data[52:56], "little")]
    shown, size = run(peer, "dtype", text.decode()).rstrip("\n").rsplit(" ", 1)
    dtype = np.dtype(item)
    assert int(size) == dtype.itemsize
    if "say" not in shown and "it's" not in shown:  # the quotes of such a name are not the program's to choose
        read = np.dtype(ast.literal_eval(shown))
        assert (read.names, read.itemsize, read.subdtype) == (dtype.names, dtype.itemsize, dtype.subdtype)


@pytest.mark.parametrize(
    "text",
    [
        "", "'f8'", "'<f'", "'<x8'", "'<f8", "<f8", "'<f8' ", "'<f99999999999'", "('array', '<f8')",
        "('array', '<f8', (0,))",
        "('array', '<f8', (4294967296, 4294967296))", "('record', [], 0)", "('record', [('a', '<f8', 1)], 8)",
        "('record', [('a', '<f8', 0)], 8", "('record', [('a', '<f8', 18446744073709551615)], 8)", "(" * 5000,
        "('array', " * 5000, "__import__('os')", "('record', [('a', " * 3000,
    ],
)  # fmt: skip
def test_a_text_that_is_no_dtype_is_refused(peer, text):
    assert run(peer, "dtype", text) == "no dtype\n"


def test_a_full_table_of_participants_is_told(peer):
    with queueduct.BoundedQueue.create("one", 8, item=TICK, participants=1) as q:
        q.try_put(np.zeros(1, TICK)[0])
        assert error_of(peer, "put", "one", 0, 1).startswith(
            "TooManyParticipants: all 1 participants of 'one' are in use"
        )
