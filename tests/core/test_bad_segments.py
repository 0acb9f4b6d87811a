"""Files that are no segment, or not any more: each is refused with the field and its value, and left as it was."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

import queueduct
from queueduct import BoundedQueue, CorruptSegment
from tests.events.faults import EVENTS
from tests.overwriting.faults import OVERWRITING
from tests.rings.faults import BOUNDED, GROWING
from tests.slots.faults import SLOTS
from tests.support.children import needs_root, open_descriptors
from tests.support.raw import RawSegment

KINDS = {"bounded": BOUNDED, "growing": GROWING, "overwriting": OVERWRITING, "slots": SLOTS, "events": EVENTS}


def snapshot(path):
    status = os.stat(path)
    return path.read_bytes(), status.st_mtime_ns, status.st_size, status.st_mode, status.st_ino


def refused(cls, name, message):
    """Every way to open it gives the same clean error, the file is as it was, and no descriptor is left."""
    path = Path(os.environ["QUEUEDUCT_DIR"]) / name
    before, descriptors = snapshot(path), open_descriptors()
    sizes = {} if cls in (GROWING.cls, EVENTS.cls) else {"capacity": 16}
    messages = set()
    for use in (queueduct.open, cls.open, lambda name: cls.create(name, **sizes, exist_ok=True)):
        with pytest.raises(CorruptSegment, match=message) as caught:
            use(name)
        messages.add(str(caught.value))
    assert queueduct.queues() == []
    assert len(messages) == 1
    assert snapshot(path) == before
    assert open_descriptors() == descriptors


def make(kind):
    """A sound segment of this kind, with an item in it."""
    faults = KINDS[kind]
    with faults.make() as q:
        q.put(faults.item)
    return faults


@pytest.fixture(params=list(KINDS))
def faults(request):
    return make(request.param)


@pytest.fixture
def made(queue_dir):
    """A sound segment, where the kind does not matter."""
    make("bounded")
    return queue_dir / "q"


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        (kind, field, value)
        for kind, faults in KINDS.items()
        for field, values in faults.fields.items()
        for value in values
    ],
    ids=lambda value: value if isinstance(value, str) else repr(value)[:24],
)
def test_a_field_that_is_wrong_is_refused_by_its_name(kind, field, value):
    """Also when the checksum is right: whoever wrote it may have meant it."""
    faults = make(kind)
    with faults.raw("q") as raw:
        raw.set_field(field, value)
        raw.sign() if raw.field("item_text_bytes") < 3000 else None
    refused(
        faults.cls, "q", f"{faults.follows.get(field, field)}|(offset|total_bytes|slot_stride) must be|the file has"
    )


@pytest.mark.parametrize(
    ("kind", "field"), [(kind, field) for kind, faults in KINDS.items() for field in faults.covered]
)
def test_the_checksum_covers_what_no_other_rule_finds(kind, field):
    faults = make(kind)
    with faults.raw("q") as raw:
        raw.memory[raw.fields[field][0]] ^= faults.covered[field]
    refused(faults.cls, "q", "checksum must be|must be between")


def test_every_field_of_the_header_is_tried(faults):
    with faults.raw("q") as raw:
        assert raw.fields.keys() == faults.fields.keys() | faults.covered.keys()


@pytest.mark.parametrize(
    "keep", [0, 1, 7, 31, 191, 255, 256, 261, 383, 400, 511, 512, 516, 4095, 4096, 4200, 8192, -4096, -1]
)
def test_a_file_that_is_too_short_is_refused(faults, queue_dir, keep):
    path = queue_dir / "q"
    os.truncate(path, keep if keep >= 0 else path.stat().st_size + keep)
    short = "too short|the file has .* bytes, total_bytes=|item_text|checksum|magic must be|capacity must be"
    refused(faults.cls, "q", short)


@pytest.mark.parametrize("more", [1, 4096, 1 << 30])
def test_a_file_that_is_too_long_is_refused(faults, queue_dir, more):
    path = queue_dir / "q"
    size = path.stat().st_size + more
    os.truncate(path, size)
    with pytest.raises(CorruptSegment, match=f"the file has {size} bytes, total_bytes={size - more}"):
        queueduct.open("q")
    assert path.stat().st_size == size


def test_a_header_that_changes_after_opening_changes_nothing(faults):
    """Every size was copied once."""
    with queueduct.open("q") as q:
        reader = q.subscribe(start="earliest") if hasattr(q, "subscribe") else q
        capacity = q.capacity
        with faults.raw("q") as raw:
            raw.memory[raw.base : raw.base + raw.header_bytes] = b"\xff" * raw.header_bytes
        assert q.capacity == capacity
        for _ in range(100):
            assert reader.get() == faults.item
            q.put(faults.item)
        with pytest.raises(CorruptSegment, match="magic"):
            queueduct.open("q")


@pytest.mark.parametrize("kind", [2, 3, 4, 5])
def test_a_kind_that_the_rest_contradicts_is_a_clean_error(made, kind):
    with RawSegment("q") as raw:
        raw.set_field("kind", kind)
        raw.sign()
    descriptors = open_descriptors()
    for use in (queueduct.open, BoundedQueue.open):
        with pytest.raises(CorruptSegment):
            use("q")
    assert open_descriptors() == descriptors


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
    refused(BoundedQueue, "q", "item_text|slot_bytes")


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
    refused(BoundedQueue, "q", "item_text must be b'bytes' for item_kind=1")


def test_a_dtype_of_another_size_than_its_slots_is_refused(queue_dir):
    BoundedQueue.create("q", 16, item="<f8").close()
    with RawSegment("q") as raw:
        raw.set_text(b"'<f4'")
        raw.sign()
    refused(BoundedQueue, "q", "slot_bytes must be the dtype's 4: slot_bytes=8")


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
        refused(BoundedQueue, "q", f"belongs to another user: owner=54321, we are {os.geteuid()}")

    def test_any_file_at_all(self, queue_dir):
        (queue_dir / "text").write_text("x" * 10_000)
        refused(BoundedQueue, "text", "magic must be b'QUEUDUCT': magic=b'xxxxxxxx'")
