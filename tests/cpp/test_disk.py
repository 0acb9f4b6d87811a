"""A C++ program at the edges of the world: disks, crashes of the machine, truncated files, full file systems."""

from __future__ import annotations

import contextlib
import os
import subprocess

import numpy as np
import pytest

import queueduct
from queueduct.segments import boot
from tests.spark.rows import TICK, numbered
from tests.support.children import needs_root
from tests.support.compiled import error_of, run
from tests.support.deadline import until
from tests.support.raw import RawEvents


@contextlib.contextmanager
def staying(peer, *arguments):
    """A C++ process that has put, says the end of the log, and stays until it is told to go."""
    with subprocess.Popen(
        [peer, "stay", "q", *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        said = process.stdout.readline()
        yield process, int(said)
        if process.poll() is None:
            process.communicate("go\n", timeout=30)
            assert process.returncode == 0


@pytest.mark.parametrize(("sync", "is_asked"), [("always", False), ("interval", False), ("never", True)])
def test_what_cpp_puts_into_a_log_on_a_disk_is_written_there_as_its_sync_says(peer, disk, sync, is_asked):
    queueduct.EventQueue.create("q", item=TICK, sync=sync, sync_interval=0.01).close()  # no handle of ours syncs it
    with staying(peer, 100, *["sync"] * is_asked) as (_, end):
        until(lambda: queueduct.watch("q").stats().synced == end == 100, "everything is on the disk")
    with queueduct.EventQueue.open("q") as log:
        assert np.array_equal(log.read(0, 100), numbered(0, 100))


def test_a_log_that_syncs_never_is_synced_when_cpp_closes_it(peer, disk):
    queueduct.EventQueue.create("q", item=TICK, sync="never").close()
    with staying(peer, 10):
        assert queueduct.watch("q").stats().synced == 0
    assert queueduct.watch("q").stats().synced == 10


def test_after_a_crash_of_the_machine_a_cpp_program_cuts_the_log_to_what_was_synced(peer, disk):
    with queueduct.EventQueue.create("q", item=TICK, sync="never") as log:
        log.put_many(numbered(0, 50))
        log.sync()
    with RawEvents("q") as raw:
        synced = raw.get_control("synced")
        raw.set_control("synced", 30)
        raw.set_control("confirmed", 30)
        raw.start_anew()
    assert synced == 50
    run(peer, "put", "q", 1000, 5)
    with queueduct.EventQueue.open("q") as log:
        assert log.read(0, log.end)["number"].tolist() == [*range(30), *range(1000, 1005)]
        assert log.stats().epoch == 1


def test_within_the_same_boot_nothing_is_cut(peer, disk):
    with queueduct.EventQueue.create("q", item=TICK, sync="never") as log:
        log.put_many(numbered(0, 50))
    with RawEvents("q") as raw:
        raw.set_control("synced", 30)
    run(peer, "put", "q", 50, 5)
    with queueduct.EventQueue.open("q") as log:
        assert (log.end, log.stats().epoch) == (55, 0)


def test_cpp_knows_the_boot_and_its_process_as_python_does(peer):
    with subprocess.Popen(
        [peer, "witnesses", "q"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        boot_id = [int.from_bytes(boot.kernel_boot_id()[i : i + 8], "little") for i in (0, 8)]
        offset = boot.clock_offset_ns()
        assert process.stdout.readline().split() == [*map(str, boot_id), str(int(offset is not None)), str(offset or 0)]
        own = [int.from_bytes(boot.boot_id()[i : i + 8], "little") for i in (0, 8)]
        ticks = boot.start_ticks_of(boot.PROC / str(process.pid))
        assert ticks > 0
        assert process.stdout.readline().split() == [str(each) for each in (*own, process.pid, ticks)]
        process.communicate("go\n", timeout=30)


PROC = "24 1 0:22 / /proc rw - proc proc rw\n"
ID = "/proc/sys/kernel/random/boot_id"


@pytest.mark.parametrize(
    "mounts",
    [
        PROC,
        "",
        "1 0 8:1 / / rw - ext4 /dev/sda rw\n" + PROC,
        PROC + f"99 24 0:50 /id {ID} rw - tmpfs tmpfs rw\n",
        PROC + f"99 24 0:22 /sys/kernel/random/boot_id {ID} rw - proc proc rw\n",
        PROC + f"99 24 0:22 /sys/kernel/random/uuid {ID} rw - proc proc rw\n",
        PROC + "99 24 0:22 /sys /proc/sys ro - proc proc rw\n",
        PROC + "99 24 0:60 / /proc/sys rw shared:3 master:1 - tmpfs tmpfs rw\n",
        "24 1 0:22 /somewhere /proc rw - proc proc rw\n",
        "24 1 0:22 / /process rw - proc proc rw\n",
    ],
)
def test_cpp_reads_a_table_of_mounts_as_python_does(peer, mounts):
    expected = boot.is_kernels_own(boot.PROC / boot.INSIDE_PROC[1:], mounts)
    assert run(peer, "is_kernels_own", ID, mounts) == f"{int(expected)}\n"


def test_a_file_that_is_truncated_while_it_is_used_costs_a_call_and_not_the_process(peer, queue_dir):
    for make in (queueduct.BoundedQueue, queueduct.OverwritingQueue, queueduct.EventQueue):
        sizes = {} if make is queueduct.EventQueue else {"capacity": 2048}
        make.create("q", item=TICK, replace=True, **sizes).close()
        with subprocess.Popen(
            [peer, "put_twice", "q"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout.readline() == "put\n"
            os.truncate(queue_dir / "q", 4096)
            _, told = process.communicate("go on\n", timeout=30)
        assert process.returncode == 1
        assert told.startswith("CorruptSegment: the segment of 'q' was truncated while it was in use"), told


@needs_root
def test_on_a_full_file_system_a_put_says_so_and_goes_on_later(peer, tmp_path, monkeypatch):
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "tmpfs", small], check=True)
    try:
        monkeypatch.setenv("QUEUEDUCT_DIR", str(small))
        with queueduct.EventQueue.create("q", item=TICK, max_bytes=16 << 20, chunk_bytes=1 << 16) as log:
            (small / "ballast").write_bytes(bytes(1 << 20))
            put = int(run(peer, "put_many", "q", 0, 100_000))
            assert 0 < put < 100_000
            message = error_of(peer, "put_many", "q", put, 10_000)
            assert "no memory for another chunk of 'q'; nothing of this item was put" in message
            (small / "ballast").unlink()
            run(peer, "put_many", "q", put, 1000)
            assert log.read(0, log.end)["number"].tolist() == list(range(put + 1000))
    finally:
        subprocess.run(["umount", small], check=True)


def test_without_a_descriptor_to_spare_an_open_says_so(peer):
    queueduct.BoundedQueue.create("q", 4, item=TICK).close()
    done = subprocess.run(
        ["sh", "-c", 'ulimit -n 4; exec "$0" open q any', peer], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "a file descriptor of its own for its locks" in done.stderr or "Too many open files" in done.stderr
