"""Writers that lap the readers at full speed, in processes of their own.

Allowed: any message may be overwritten, which is counted; what comes is whole, comes once, and comes to each reader in
each writer's order. Nothing is random here; the schedule is the machine's.
"""

from __future__ import annotations

import numpy as np
import pytest

from queueduct import OverwritingQueue

WRITERS = 4
PUTS, LONG_PUTS = 200_000, 10_000_000
SHIFT = 40


def write(q, writer, count, overwrite):
    for i in range(count):
        q.put((writer << SHIFT | i).to_bytes(8, "little") * (q.message_bytes // 8), overwrite=overwrite)


def read(q, path):
    got = []
    for item in q:
        if item != item[:8] * (len(item) // 8):
            raise AssertionError(f"a torn message: {item!r}")
        got.append(int.from_bytes(item[:8], "little"))
    np.save(path, np.array(got, "<i8"))


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("capacity", "message_bytes", "readers", "share"),
    [(64, 64, 2, 1), (1, 64, 4, 4), (3, 4096, 2, 8)],
    ids=["a few small messages", "a single message", "pages"],
)
@pytest.mark.parametrize("overwrite", [True, False], ids=["overwriting", "keeping"])
def test_nothing_is_torn_or_repeated_and_every_loss_is_counted(
    children, queue_dir, is_long, capacity, message_bytes, readers, share, overwrite
):
    q = OverwritingQueue.create("q", capacity, message_bytes=message_bytes)
    each = (LONG_PUTS if is_long and overwrite else PUTS if overwrite else PUTS // 10) // share // WRITERS
    reading = [children.fork(lambda n=n: read(q, queue_dir / f"got{n}.npy")) for n in range(readers)]
    writing = [children.fork(lambda n=n: write(q, n, each, overwrite)) for n in range(WRITERS)]
    assert [children.wait(pid) for pid in writing] == [0] * WRITERS
    q.shutdown()
    assert [children.wait(pid) for pid in reading] == [0] * readers
    got = [np.load(queue_dir / f"got{n}.npy") for n in range(readers)]
    stats = q.stats()
    in_all = np.sort(np.concatenate(got))
    assert (np.diff(in_all) > 0).all(), "a message came twice"
    assert ((in_all & (1 << SHIFT) - 1) < each).all()
    assert ((in_all >> SHIFT) < WRITERS).all()
    for numbers in got:
        for writer in range(WRITERS):
            assert (np.diff(numbers[numbers >> SHIFT == writer]) > 0).all(), "out of order"
    assert (stats.puts, stats.gets) == (WRITERS * each, len(in_all))
    assert stats.puts == stats.gets + stats.overwritten
    assert (stats.torn, stats.lost_with_consumer, stats.size) == (0, 0, 0)
    assert (stats.overwritten > 0) == overwrite, "writers lap the readers, and only those who may"
