"""Files that are no segment, or not any more: each is refused with the field and its value, and left as it was."""

from __future__ import annotations

import faulthandler
import os
import signal
import socket
import struct

import pytest

import queueduct
from queueduct import BoundedQueue, CorruptSegment
from queueduct.native import _layout
from tests.support.children import needs_root, open_descriptors
from tests.support.raw import CLOSED_BIT, RawSegment


def snapshot(path):
    status = os.stat(path)
    return path.read_bytes(), status.st_mtime_ns, status.st_size, status.st_mode, status.st_ino


def refused(name, path, message):
    """Every way to open it gives the same clean error, the file is as it was, and no descriptor is left."""
    before, descriptors = snapshot(path), open_descriptors()
    messages = set()
    for use in (queueduct.open, BoundedQueue.open, lambda name: BoundedQueue.create(name, 16, exist_ok=True)):
        with pytest.raises(CorruptSegment, match=message) as caught:
            use(name)
        messages.add(str(caught.value))
    assert queueduct.queues() == []
    assert len(messages) == 1
    assert snapshot(path) == before
    assert open_descriptors() == descriptors


@pytest.fixture
def made(queue_dir):
    """A sound segment of bytes, with an item in it."""
    with BoundedQueue.create("q", 16, slot_bytes=32, participants=4) as q:
        q.put(b"item")
    return queue_dir / "q"


HEADER_FAULTS = {
    # field: values that it must not have
    "magic": [b"QUEUDUCL", bytes(8), b"\xff" * 8, b"queueduct"],
    "layout_version": [0, 1, 2, 2**32 - 1],
    "byte_order": [0x04030201, 0, 2**32 - 1],
    "kind": [0, 6, 2**32 - 1],
    "item_kind": [0, 4, 2**32 - 1],
    "total_bytes": [0, 1, 4096, 2**63, 2**64 - 1],
    "capacity": [0, 1, 3, 15, 17, 1024, 2**32, 2**33, 2**62, 2**63, 2**64 - 1],
    "slot_bytes": [0, 3200, 2**32, 2**32 + 1, 2**63, 2**64 - 1],
    "participants": [0, 64, 2**14, 2**14 + 1, 2**32 - 1],
    "producers": [0, 64, 2**12, 2**12 + 1, 2**32 - 1],
    "item_text_bytes": [0, 4, 6, 4000, 2**20, 2**20 + 1, 2**32 - 1],
    "item_text_offset": [0, 8, 257, 4096, 2**63, 2**64 - 1],
    "control_offset": [0, 256, 4095, 4097, 8192, 2**63, 2**64 - 8],
    "participants_offset": [0, 4096, 4737, 2**63, 2**64 - 1],
    "producers_offset": [0, 5120, 5249, 2**63, 2**64 - 1],
    "generations_offset": [0, 4096, 8193, 2**63, 2**64 - 8],
    "lengths_offset": [0, 8192, 8321, 2**63, 2**64 - 4],
    "payload_offset": [0, 8192, 12289, 2**63, 2**64 - 1],
    "reserved": [b"\1" + bytes(91), bytes(91) + b"\x80"],
}


@pytest.mark.parametrize(
    ("field", "value"),
    [(field, value) for field, values in HEADER_FAULTS.items() for value in values],
    ids=lambda value: value if isinstance(value, str) else repr(value)[:24],
)
def test_a_field_that_is_wrong_is_refused_by_its_name(made, field, value):
    """Also when the checksum is right: whoever wrote it may have meant it."""
    with RawSegment("q") as raw:
        raw.set_field(field, value)
        raw.sign() if raw.field("item_text_bytes") < 4000 else None
    # a size that is possible, but another than the rest was made for, shows in what follows from it
    name = {"item_text_bytes": "item_text"}.get(field, field)
    refused("q", made, f"{name}|(offset|total_bytes) must be|the file has")


@pytest.mark.parametrize(
    "field", ["segment_id", "boot_id", "created_ns", "creator_pid", "checksum", "producers", "slot_bytes"]
)
def test_the_checksum_covers_what_no_other_rule_finds(made, field):
    with RawSegment("q") as raw:
        offset, size = _layout.FIELDS[field]
        raw.memory[offset] ^= 1
        assert size >= 4
    refused("q", made, "checksum must be")


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (2, ": "),
        (3, ": "),
        (4, ": "),
        (5, ": "),
    ],
)
def test_a_kind_that_this_version_cannot_open_is_a_clean_error(made, kind, message):
    with RawSegment("q") as raw:
        raw.set_field("kind", kind)
        raw.sign()
    descriptors = open_descriptors()
    for use in (queueduct.open, BoundedQueue.open):
        with pytest.raises(CorruptSegment, match=message):
            use("q")
    assert open_descriptors() == descriptors


@pytest.mark.parametrize("keep", [0, 1, 7, 255, 256, 261, 4095, 4096, 8192, -4096, -1])
def test_a_file_that_is_too_short_is_refused(made, keep):
    size = made.stat().st_size
    os.truncate(made, keep if keep >= 0 else size + keep)
    refused("q", made, "too short for a header|the file has .* bytes, total_bytes=|item_text")


@pytest.mark.parametrize("more", [1, 4096, 1 << 30])
def test_a_file_that_is_too_long_is_refused(made, more):
    os.truncate(made, made.stat().st_size + more)
    size = made.stat().st_size
    with pytest.raises(CorruptSegment, match=f"the file has {size} bytes, total_bytes={size - more}"):
        queueduct.open("q")
    assert made.stat().st_size == size


ITEM_TEXTS = {
    "another kind's": b"object",
    "empty string": b"''",
    "no literal": b"__import__('os').abort()",
    "a call": b"print(1)",
    "a name": b"float",
    "an attribute": b"().__class__",
    "a lambda": b"lambda: 0",
    "a comprehension": b"[x for x in (1,)]",
    "no text": b"\xff\xfe",
    "nul": b"'<f8'\0",
    "objects": b"'O'",
    "objects deep inside": b"('record', [('a', ('array', '|O', (2,)), 0)], 16)",
    "strings of varying length": b"'T'",
    "no size": b"'S0'",
    "a number": b"5",
    "wrong tag": b"('recorb', [('a', '<f8', 0)], 8)",
    "negative shape": b"('array', '<f8', (-1,))",
    "enormous shape": b"('array', '<f8', (999999999999999999999999,))",
    "enormous size": b"('record', [('a', '<f8', 0)], 999999999999999999999999)",
    "enormous offset": b"('record', [('a', '<f8', 999999999999999999999999)], 8)",
    "negative offset": b"('record', [('a', '<f8', -8)], 8)",
    "offset outside": b"('record', [('a', '<f8', 4)], 8)",
    "twice the same name": b"('record', [('a', '<f4', 0), ('a', '<f4', 4)], 8)",
    "fields of the wrong shape": b"('record', [5], 8)",
    "an old alias": b"'a8'",
    "deep": b"(" * 3000,
    "deep and closed": b"(" * 90 + b")" * 90,
    "very deep minus": b"-" * 3700 + b"1",
    "long sum": b"1+" * 1800 + b"1",
    "escapes": b"'\\N{foo}'",
    "lone surrogate": b"'\\ud800'",
}


@pytest.mark.parametrize("text", list(ITEM_TEXTS.values()), ids=list(ITEM_TEXTS))
def test_an_item_text_that_is_no_description_is_refused_and_never_run(queue_dir, text):
    BoundedQueue.create("q", 16, item="<f8", participants=4).close()
    with RawSegment("q") as raw:
        raw.set_text(text)
        raw.sign()
    refused("q", queue_dir / "q", "item_text|slot_bytes")


def test_an_item_text_of_a_megabyte_of_nonsense_is_refused(queue_dir, children):
    """In another process: a parser that runs out of stack would take this one along."""
    code = """
import sys, queueduct
from queueduct.items.types import ItemType
for text in (b"-" * 1_000_000 + b"1", b"[" * 1_000_000, b"1+" * 500_000 + b"1", b"(" * 99 + b")" * 99,
             b"{1:" * 300_000, b"not " * 250_000 + b"1", b"'a'" * 300_000, b"1if 1else " * 90_000 + b"1",
             b"~" * 10**6 + b"1", b"a." * 500_000 + b"a",
             b"1**" * 300_000 + b"1", b"1<" * 400_000 + b"1", b"f(" * 300_000, b"*" * 10**6):
    try:
        ItemType.from_header(2, text)
        print("accepted", text[:20])
    except queueduct.CorruptSegment:
        pass
print("done")
"""
    assert children.run(code) == "done\n"


def test_a_text_for_bytes_that_says_something_else_is_refused(made):
    with RawSegment("q") as raw:
        raw.set_text(b"bytez")
        raw.sign()
    refused("q", made, "item_text must be b'bytes' for item_kind=1")


def test_a_dtype_of_another_size_than_its_slots_is_refused(queue_dir):
    BoundedQueue.create("q", 16, item="<f8").close()
    with RawSegment("q") as raw:
        raw.set_text(b"'<f4'")
        raw.sign()
    refused("q", queue_dir / "q", "slot_bytes must be the dtype's 4: slot_bytes=8")


class TestNoRegularFile:
    def test_a_symbolic_link(self, made, queue_dir):
        (queue_dir / "link").symlink_to(made)
        with pytest.raises(CorruptSegment, match="is a symbolic link"):
            queueduct.open("link")
        assert queueduct.open("q").get() == b"item"

    def test_a_dangling_link_is_not_followed_by_create_either(self, queue_dir, tmp_path):
        (queue_dir / "link").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(queueduct.QueueExists):
            BoundedQueue.create("link", 4)
        assert not (tmp_path / "elsewhere").exists()

    def test_a_directory(self, queue_dir):
        (queue_dir / "folder").mkdir()
        with pytest.raises(CorruptSegment, match="is a directory"):
            queueduct.open("folder")

    def test_a_fifo_with_nobody_at_the_other_end(self, queue_dir):
        os.mkfifo(queue_dir / "fifo")
        with pytest.raises(CorruptSegment, match="is not a regular file"):
            queueduct.open("fifo")

    def test_a_socket(self, queue_dir):
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(queue_dir / "socket"))
            with pytest.raises(CorruptSegment, match="is a socket or a device"):
                queueduct.open("socket")

    @needs_root
    def test_a_device(self, queue_dir):
        os.mknod(queue_dir / "null", 0o600 | 0o020000, os.makedev(1, 3))
        with pytest.raises((CorruptSegment, PermissionError)):
            queueduct.open("null")

    def test_a_file_with_another_hard_link(self, made, queue_dir):
        os.link(made, queue_dir / "other")
        for name in ("q", "other"):
            with pytest.raises(CorruptSegment, match="has other hard links: links=2"):
                queueduct.open(name)
        os.unlink(queue_dir / "other")
        assert queueduct.open("q").get() == b"item"

    @needs_root
    def test_a_file_of_another_user(self, made):
        os.chown(made, 54321, 54321)
        refused("q", made, f"belongs to another user: owner=54321, we are {os.geteuid()}")

    def test_any_file_at_all(self, queue_dir):
        (queue_dir / "text").write_text("x" * 10_000)
        refused("text", queue_dir / "text", "magic must be b'QUEUDUCT': magic=b'xxxxxxxx'")


CONTROL_FAULTS = {
    # (push position, pop position): what a queue of 16 can never have
    "pop beyond push": (3, 5),
    "pop far beyond push": (3, 2**40),
    "push too far ahead": (1 + 17, 1),
    "push very far ahead": (2**50, 1),
    "push near the end": (2**63 - 1, 2**63 - 2),
    "both elsewhere": (12345, 12345),
}


@pytest.mark.parametrize("item", [bytes, "S16", object])
@pytest.mark.parametrize(("push", "pop"), list(CONTROL_FAULTS.values()), ids=list(CONTROL_FAULTS))
def test_positions_that_cannot_be_are_noticed_in_use(item, push, pop):
    """Never a hang, never an item that was not put: each call gives an item that was, or a clean error."""
    with BoundedQueue.create("q", 16, item=item) as q:
        for i in range(3):
            q.put(b"%d" % i)
        with RawSegment("q") as raw:
            raw.push_position, raw.pop_position = push, pop
        errors = []
        calls = [q.try_get, lambda: q.get(timeout=0.3), lambda: q.get_many(5, timeout=0.3)]
        calls += [
            lambda: q.try_put(b"x"),
            lambda: q.put(b"x", timeout=0.3),
            lambda: q.put_many([b"x"] * 20, timeout=0.3),
        ]
        for call in calls:
            try:
                call()
            except CorruptSegment as error:
                errors.append(str(error))
            except (queueduct.Empty, queueduct.Full):
                pass
        assert errors
        assert all("push_position=" in error for error in errors)
        assert 0 <= q.qsize() <= 16
        q.stats()


@pytest.mark.parametrize("length", [33, 16 * 32 + 1, 2**31 - 1, 2**31, 2**31 | 5, 2**32 - 1])
def test_a_length_beyond_its_slot_is_noticed_in_use(made, length):
    with queueduct.open("q") as q:
        q.put(b"second")
        with RawSegment("q") as raw:
            raw.set_length(0, length)
        try:
            got = q.get(timeout=0.3)
        except (CorruptSegment, queueduct.Empty):
            return
        assert len(got) <= 16 * 32


@pytest.mark.parametrize("generation", [2, 16, 17, 2**40, CLOSED_BIT, CLOSED_BIT | 2, 2**64 - 1, 3 << 62])
def test_a_generation_that_cannot_be_is_noticed_in_use(made, generation):
    with queueduct.open("q") as q:
        with RawSegment("q") as raw:
            raw.set_generation(0, generation)
        for call in (lambda: q.get(timeout=0.3), lambda: q.get_many(3, timeout=0.3)):
            with pytest.raises((CorruptSegment, queueduct.Empty)):
                call()


def test_a_number_of_participants_in_use_beyond_the_table_is_not_believed(made):
    with queueduct.open("q") as q:
        with RawSegment("q") as raw:
            struct.pack_into("<I", raw.memory, raw.field("control_offset") + 512, 2**32 - 1)
        assert q.stats().participants <= 4
        assert q.get() == b"item"
        q.put(b"1")


def test_a_header_that_changes_after_opening_changes_nothing(made):
    """Every size was copied once."""
    with queueduct.open("q") as q:
        with RawSegment("q") as raw:
            raw.memory[:256] = b"\xff" * 256
        assert q.capacity == 16
        assert q.get() == b"item"
        for i in range(40):
            q.put(b"%d" % i)
            assert q.get() == b"%d" % i
        with pytest.raises(CorruptSegment, match="magic"):
            queueduct.open("q")


LOOKS = {
    "qsize": lambda q, value: q.qsize(),
    "stats": lambda q, value: q.stats(),
    "full": lambda q, value: q.full(),
    "repr": lambda q, value: repr(q),
    "shutdown": lambda q, value: q.shutdown(),
    "close": lambda q, value: q.close(),
}
WORKS = {
    "put": lambda q, value: q.put(value, timeout=0.2),
    "try_put": lambda q, value: q.try_put(value),
    "put_many": lambda q, value: q.put_many([value] * 5000, timeout=0.2),
    "get": lambda q, value: q.get(timeout=0.2),
    "try_get": lambda q, value: q.try_get(),
    "get_many": lambda q, value: q.get_many(5000, timeout=0.2),
}


def use_a_truncated_file(how, size, when, item):
    """In a process of its own. It ends well if the call works or is refused as it should."""
    faulthandler.disable()
    if when == "before":
        faulthandler.enable()
    BoundedQueue.create("first", 4)
    if when == "between":
        faulthandler.enable()
    value = 1.5 if item == "f8" else b"x"
    q = BoundedQueue.create("q", 4096, item=item)
    q.put_many([value] * 100)
    os.truncate(os.path.join(os.environ["QUEUEDUCT_DIR"], "q"), size)
    for name in (how, how, "get"):  # at the latest the second time it is known
        try:
            (LOOKS | WORKS)[name](q, value)
            assert name in LOOKS or size > 0, "nobody noticed"
        except CorruptSegment as error:
            assert "truncated" in str(error)
        except (queueduct.ShutDown, queueduct.QueueClosed):
            assert how in ("shutdown", "close")
        except (queueduct.Empty, queueduct.Full):
            assert size > 0, "nobody noticed"


@pytest.mark.parametrize("item", [bytes, "f8"])
@pytest.mark.parametrize("when", ["without", "before", "between"])
@pytest.mark.parametrize("size", [0, 40_000])
@pytest.mark.parametrize("how", [*WORKS, *LOOKS])
def test_a_file_truncated_while_it_is_mapped_is_an_error_and_not_the_end(children, how, size, when, item):
    """Touching a page that the file has lost raises SIGBUS, which kills by default, or by way of faulthandler.

    faulthandler may have been enabled before the first queue was opened, or between it and the one that is used.
    """
    assert children.wait(children.fork(lambda: use_a_truncated_file(how, size, when, item))) == 0


def test_a_file_truncated_under_a_waiting_get_wakes_it_with_an_error(children):
    child = children.start(
        """
import queueduct
q = queueduct.BoundedQueue.create("q", 4)
print("ready", flush=True)
try:
    q.get()
except queueduct.CorruptSegment as error:
    print("truncated" in str(error))
"""
    )
    assert child.stdout.readline() == "ready\n"
    os.truncate(os.path.join(os.environ["QUEUEDUCT_DIR"], "q"), 0)
    out, err = child.communicate(timeout=60)
    assert (out, err, child.returncode) == ("True\n", "", 0)


@pytest.mark.parametrize("when", ["without", "before", "between", "after"])
def test_any_other_sigbus_still_kills(children, when):
    child = children.start(
        """
import faulthandler, mmap, os, sys, queueduct
def enable(when):
    if when == sys.argv[1]:
        faulthandler.enable()
enable("before")
q = queueduct.BoundedQueue.create("q", 4)
enable("between")
r = queueduct.BoundedQueue.create("r", 4)
enable("after")
fd = os.memfd_create("mine")
os.ftruncate(fd, 4096)
mine = mmap.mmap(fd, 4096)
os.ftruncate(fd, 0)
mine[0]
""",
        when,
    )
    _, err = child.communicate(timeout=60)
    assert child.returncode == -signal.SIGBUS
    assert err.count("Fatal Python error: Bus error") == (0 if when == "without" else 1)
