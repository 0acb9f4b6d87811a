"""A watch never writes, never crashes, and says what the queue's own handle says."""

from __future__ import annotations

import hashlib
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import queueduct
from tests.support.kinds import CLASSES

SIZES: dict[str, dict[str, Any]] = {
    "bounded": {"capacity": 64, "slot_bytes": 64},
    "growing": {"max_bytes": 1 << 20, "slot_bytes": 64},
    "events": {"max_bytes": 1 << 20},
    "overwriting": {"capacity": 64, "message_bytes": 64},
    "slots": {"capacity": 64, "slot_bytes": 64},
}
ITEM = bytes(64)


@pytest.fixture(params=list(SIZES))
def q(request: pytest.FixtureRequest) -> Iterator[Any]:
    with CLASSES[request.param].create("q", participants=32, **SIZES[request.param]) as made:
        yield made


def state_of(path: Path) -> tuple[str, int, int]:
    status = path.stat()
    found = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        at = 0
        while at < status.st_size:  # only what has memory: a growing queue's file is long and sparse
            try:
                at = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError:
                break
            end = os.lseek(file.fileno(), at, os.SEEK_HOLE)
            found.update(b"%d" % at + os.pread(file.fileno(), end - at, at))
            at = end
    return found.hexdigest(), status.st_blocks, status.st_mtime_ns


def look(watch: queueduct.Watch) -> list[Any]:
    """Calls everything that a watch has."""
    seen = [watch.stats(), watch.participants(), watch.created, watch.creator, watch.capacity, watch.sizes, watch.item]
    seen += [watch.exists, watch.kind, watch.name, watch.directory, watch.segment_id, repr(watch)]
    if watch.kind == "events":
        seen.append(watch.readers())
    if watch.kind != "overwriting":
        seen.append(watch.producers())
    return seen


def leave_everything_that_recovery_finds(q: Any) -> None:
    """Puts and gets, and kills processes that hold what they can hold."""
    q.put_many([ITEM] * 40)
    if q.kind != "overwriting":
        q.put_once([ITEM, ITEM], "feed", 7)
    if q.kind == "events":
        q.subscribe("durable", start="earliest").close()
    for number in range(3):
        if (child := os.fork()) == 0:
            held: Any = None
            if q.kind == "events":
                held = q.subscribe(start="earliest").get_many(5)
            else:
                q.get()
                held = q.lease(3)
            if q.kind == "slots" and number:
                held = [held, q.loan(), q.take()]
            q.put(ITEM)
            os.kill(os.getpid(), signal.SIGKILL if held else signal.SIGTERM)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def test_a_watch_says_what_the_queue_says_and_writes_nothing(q: Any, queue_dir: Path) -> None:
    leave_everything_that_recovery_finds(q)
    before = state_of(queue_dir / "q")
    threads = threading.active_count()
    with queueduct.watch("q") as watch:
        first = look(watch)
        assert look(watch) == first
        assert state_of(queue_dir / "q") == before
        assert first[0] == q.stats()
        assert first[1] == q.participants()
        assert (watch.created, watch.creator, watch.item) == (q.created, q.creator, q.item)
        assert (watch.segment_id, watch.directory, watch.capacity) == (q.segment_id, q.directory, q.capacity)
        if q.kind == "events":
            assert watch.readers() == [each for each in q.readers() if each.is_attached or each.name is not None]
        if q.kind != "overwriting":
            assert watch.producers() == q.producers()
        assert threading.active_count() == threads


def test_a_watch_opens_and_maps_its_file_for_reading_only(q: Any, queue_dir: Path) -> None:
    """Asked of the kernel, since root may write to a file of any mode."""
    q.put_many([ITEM] * 10)
    (queue_dir / "q").chmod(0o444)
    program = (
        "import os, sys, queueduct\n"
        "path = sys.argv[1] + '/q'\n"
        "w = queueduct.watch('q', directory=sys.argv[1])\n"
        "assert (w.stats().items_put, len(w.participants())) == (10, 1)\n"
        "assert len(queueduct.queues(directory=sys.argv[1])) == 1\n"
        "maps = [line.split()[1] for line in open('/proc/self/maps') if line.rstrip().endswith(path)]\n"
        "assert maps and all('w' not in each for each in maps), maps\n"
        "numbers = [int(each) for each in os.listdir('/proc/self/fd')]\n"
        "modes = []\n"
        "for number in numbers:\n"
        "    try:\n"
        "        if os.readlink(f'/proc/self/fd/{number}') != path: continue\n"
        "    except OSError: continue\n"
        "    text = open(f'/proc/self/fdinfo/{number}').read()\n"
        "    modes.append(int(text.split('flags:')[1].split()[0], 8) & os.O_ACCMODE)\n"
        "assert modes and set(modes) == {os.O_RDONLY}, modes\n"
        "print('ok')\n"
    )
    told = subprocess.run([sys.executable, "-c", program, queue_dir], capture_output=True, text=True, check=False)
    assert told.stdout == "ok\n", told.stderr


def test_a_watch_is_no_participant_and_leaves_the_queue_alone(q: Any) -> None:
    watches = [queueduct.watch("q") for _ in range(200)]
    assert all(watch.stats().participants == 0 for watch in watches)
    q.put(ITEM)
    assert all(watch.stats().items_put == 1 for watch in watches)
    assert q.stats().participants == 1
    for watch in watches:
        watch.close()


def test_a_watch_sees_dead_participants_until_they_are_recovered(q: Any) -> None:
    q.put_many([ITEM] * 4)
    with queueduct.watch("q") as watch:
        (mine,) = watch.participants()
        assert (mine.pid, mine.thread, mine.alive) == (os.getpid(), threading.get_native_id(), True)
        assert mine.command is not None
        assert "pytest" in mine.command or "python" in mine.command
        assert (mine.items_put, mine.bytes_put, mine.items_got, mine.owners) == (4, 256, 0, 1)
        assert abs(mine.last_use - datetime.now(UTC)) < timedelta(minutes=5)
        if q.kind in ("events", "overwriting"):
            return
        if (child := os.fork()) == 0:
            held = q.lease(2)
            os.kill(os.getpid(), signal.SIGKILL if held else signal.SIGTERM)
        os.waitpid(child, 0)
        dead = [each for each in watch.participants() if not each.alive]
        assert [each.pid for each in dead] == [child]
        assert dead[0].command is None
        assert watch.stats().leased == 0
        with q.lease(2) as again:
            assert again.is_redelivered
        assert all(each.alive for each in watch.participants())


def test_without_commands_participants_are_the_same_and_proc_is_left_alone(
    q: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    q.put_many([ITEM] * 4)
    with queueduct.watch("q") as watch:
        whole = watch.participants()
        assert [each._replace(command=None) for each in whole] == watch.participants(commands=False)
        assert whole[0].command is not None
        assert q.participants(commands=False) == watch.participants(commands=False)
        monkeypatch.setattr("queueduct.watching.commands.PROC", Path("/nowhere"))
        assert watch.participants(commands=False)[0].items_put == 4


def test_a_participant_that_has_closed_its_handle_is_not_dead(q: Any) -> None:
    with queueduct.open("q") as other:
        other.put(ITEM)
        assert len(q.participants()) == 1
    assert q.participants() == []


def test_an_unlinked_and_a_replaced_queue_do_not_exist_any_more(q: Any) -> None:
    q.put(ITEM)
    with queueduct.watch("q") as watch:
        assert watch.exists
        q.unlink()
        assert not watch.exists
        assert watch.stats().items_put == 1, "its memory stays as long as a handle"
        with CLASSES[q.kind].create("q", **SIZES[q.kind]):
            assert not watch.exists
            assert queueduct.watch("q").stats().items_put == 0
        assert "removed" in repr(watch)
    with pytest.raises(queueduct.QueueClosed, match="is closed"):
        watch.stats()
    assert watch.closed
    watch.close()


def test_a_closed_watch_lets_the_memory_of_an_unlinked_queue_go(q: Any, queue_dir: Path) -> None:
    def is_mapped() -> bool:
        return f"{queue_dir}/q (deleted)" in Path("/proc/self/maps").read_text()

    watch = queueduct.watch("q")
    q.unlink()
    q.close()
    assert is_mapped()
    watch.close()
    assert not is_mapped()


def test_a_truncated_file_is_an_error_and_no_crash(q: Any, queue_dir: Path) -> None:
    q.put_many([ITEM] * 10)
    with queueduct.watch("q") as watch:
        os.truncate(queue_dir / "q", 0)
        for call in (watch.stats, watch.participants):
            with pytest.raises(queueduct.CorruptSegment, match="truncated"):
                call()
    with pytest.raises(queueduct.CorruptSegment):
        queueduct.watch("q")


def test_a_watch_of_something_else_says_why(queue_dir: Path) -> None:
    with pytest.raises(queueduct.QueueNotFound):
        queueduct.watch("missing")
    (queue_dir / "other").write_bytes(b"not a segment" * 100)
    with pytest.raises(queueduct.CorruptSegment, match="magic"):
        queueduct.watch("other")
    with queueduct.BoundedQueue.create("b", 16) as q:
        old = bytearray((queue_dir / "b").read_bytes())
        old[8:12] = (5).to_bytes(4, "little")
        (queue_dir / "old").write_bytes(old)
        with pytest.raises(queueduct.CorruptSegment, match="layout_version must be 7: layout_version=5"):
            queueduct.watch("old")
        with queueduct.watch("b") as watch:
            with pytest.raises(TypeError, match="only an event queue has readers"):
                watch.readers()
            with pytest.raises(TypeError, match="belongs to one process"):
                pickle.dumps(watch)
        assert q.participants() == []
    with (
        queueduct.OverwritingQueue.create("o"),
        queueduct.watch("o") as watch,
        pytest.raises(TypeError, match="put_once"),
    ):
        watch.producers()


def test_a_forked_child_goes_on_with_its_parents_watch(q: Any) -> None:
    q.put(ITEM)
    with queueduct.watch("q") as watch:
        if (child := os.fork()) == 0:
            seen = watch.stats()
            ok = (seen.items_put, seen.participants) == (1, 1) and len(watch.participants()) == 1
            watch.close()
            os._exit(0 if ok else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert watch.stats().participants == 1


def test_writers_that_are_killed_disturb_no_watch_and_sums_only_rise(q: Any) -> None:
    program = (
        "import sys, queueduct\n"
        "q = queueduct.open('q', directory=sys.argv[1])\n"
        "reader = q.subscribe() if q.kind == 'events' else q\n"
        "for number in range(10**9):\n"
        "    q.put_many([bytes(64)] * 8, block=False)\n"
        "    reader.get_many(8, block=False)\n"
        "    number or print('up', flush=True)\n"
    )
    with queueduct.watch("q") as watch:
        last = watch.stats()[-7:]
        for _ in range(4):
            writer = subprocess.Popen(
                [sys.executable, "-c", program, str(q.directory)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"up\n"
            for _ in range(500):
                seen = watch.stats()[-7:]
                assert all(new >= old for new, old in zip(seen, last, strict=True)), (last, seen)
                last = seen
                watch.participants()
            writer.kill()
            writer.wait()
            writer.stdout.close()
        assert last[0] > 0


def test_created_and_creator_are_known_to_everybody(q: Any) -> None:
    (info,) = queueduct.queues()
    assert (info.name, info.kind, info.created, info.creator) == ("q", q.kind, q.created, os.getpid())
    assert q.created.tzinfo == UTC
    assert abs(q.created - datetime.now(UTC)) < timedelta(minutes=5)
    assert q.creator == os.getpid()


def test_queues_without_a_name_have_no_creation_and_no_participants() -> None:
    q = queueduct.BoundedQueue(16)
    assert (q.created, q.creator) == (None, None)
    with pytest.raises(ValueError, match="without a name has no participants"):
        q.participants()


def test_a_bad_file_does_not_break_the_list(queue_dir: Path) -> None:
    with queueduct.BoundedQueue.create("good", 16):
        (queue_dir / "short").write_bytes(b"QUEUDUCT")
        (queue_dir / "noise").write_bytes(os.urandom(10000))
        (queue_dir / "folder").mkdir()
        (queue_dir / "link").symlink_to("good")
        os.mkfifo(queue_dir / "fifo")
        os.link(queue_dir / "short", queue_dir / "twice")
        assert [each.name for each in queueduct.queues()] == ["good"]
