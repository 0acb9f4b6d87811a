"""What the system refuses: memory, holes, barriers. Nothing acknowledged is lost, nothing hangs, nobody crashes."""

from __future__ import annotations

import errno

import pytest

from tests.edges.grow_and_shrink import GROW_AND_SHRINK, GROW_AND_SHRINK_LOCALLY
from tests.edges.kinds import KINDS
from tests.support.preloading import needs_compiler, preload

pytestmark = needs_compiler


@pytest.mark.parametrize("max_bytes", [0, 1 << 20])
@pytest.mark.parametrize("error", [errno.EOPNOTSUPP, errno.ENOSPC])
def test_a_growing_queue_grows_and_shrinks_where_holes_are_refused(monkeypatch, children, error, max_bytes):
    """What cannot be given back is zeroed, and counted: max_bytes hold all the same."""
    preload(monkeypatch, "refuse", REFUSE_PUNCH=error)
    assert children.run(GROW_AND_SHRINK, max_bytes) == "fine\n"


@pytest.mark.parametrize("error", [errno.ENOSYS, errno.EPERM])
def test_a_growing_queue_gives_memory_back_without_membarrier(monkeypatch, children, error):
    preload(monkeypatch, "refuse", REFUSE_MEMBARRIER=error)
    assert children.run(GROW_AND_SHRINK, 1 << 20) == "fine\n"


LIFTED = """
import sys, time
from pathlib import Path
import queueduct
refusing = Path(sys.argv[1])
q = queueduct.GrowingQueue.create("q", slot_bytes=1024)
least = q.stats().resident_bytes
for round_ in range(2):
    for n in range(3000):
        q.put(b"%d" % n * 100)
    for n in range(3000):
        assert q.get() == b"%d" % n * 100
end = time.monotonic() + 30
while q.stats().written_level and time.monotonic() < end:
    assert q.try_get() is None
assert q.stats().resident_bytes > 3_000_000, q.stats()
refusing.unlink()
while q.stats().resident_bytes > least + 65536 and time.monotonic() < end:
    assert q.try_get() is None
assert q.stats().resident_bytes <= least + 65536, q.stats()
print("fine")
"""


def test_what_was_refused_is_given_back_when_it_can_be(monkeypatch, children, tmp_path):
    refusing = tmp_path / "refusing"
    refusing.touch()
    preload(monkeypatch, "refuse", REFUSE_PUNCH=errno.EOPNOTSUPP, REFUSE_WHEN=refusing)
    assert children.run(LIFTED, refusing) == "fine\n"


@pytest.mark.parametrize("error", [errno.EINVAL, errno.ENOMEM])
def test_queues_within_a_process_go_on_where_no_memory_is_taken_back(monkeypatch, children, error):
    preload(monkeypatch, "refuse", REFUSE_MADVISE=error)
    assert children.run(GROW_AND_SHRINK_LOCALLY) == "fine\n"


USE = """
import sys, time
from pathlib import Path
import queueduct
from tests.edges.kinds import KINDS, item, number_of
kind, refusing, number = KINDS[sys.argv[1]], Path(sys.argv[2]), int(sys.argv[3])
q = kind.create("q")
consumer = kind.consumer(q)
n, acknowledged, got = 0, [], []

def take(count):
    for _ in range(count):
        try:
            got.append(number_of(consumer.get_nowait()))
        except queueduct.Empty:
            break

def put(count):
    global n
    for _ in range(count):
        n += 1
        start = time.monotonic()
        try:
            q.put_nowait(item(n))
            acknowledged.append(n)
        except queueduct.Full:
            assert len(acknowledged) - len(got) >= 32, "full, and there is room"
        except OSError as error:
            assert error.errno == number and str(error), error
        assert time.monotonic() - start < 5

for _ in range(12):
    put(20)
    refusing.touch()
    put(20)
    take(10)
    if kind.has_leases:
        try:
            with q.lease(5, timeout=0) as lease:
                got.extend(number_of(each) for each in lease.items)
        except OSError as error:
            assert error.errno == number, error
        except queueduct.Empty:
            pass
    refusing.unlink()
    take(1000)
    put(5)
take(1000)
assert got == acknowledged, (len(got), len(acknowledged))
print("fine")
"""


@pytest.mark.parametrize("call", ["FALLOCATE", "PUNCH", "FTRUNCATE", "FDATASYNC", "MADVISE", "MEMBARRIER"])
@pytest.mark.parametrize("kind", [name for name in KINDS if name != "overwriting"])
def test_what_was_acknowledged_comes_out_whatever_is_refused_meanwhile(monkeypatch, children, tmp_path, kind, call):
    number = errno.ENOSPC if call == "FALLOCATE" else errno.EIO
    refusing = tmp_path / "refusing"
    preload(monkeypatch, "refuse", REFUSE_WHEN=refusing, **{f"REFUSE_{call}": number})
    assert children.run(USE, kind, refusing, number) == "fine\n"


CREATE = """
import sys
import queueduct
from tests.edges.kinds import KINDS
for name, kind in KINDS.items():
    try:
        kind.create("q").close()
    except OSError as error:
        assert error.errno == int(sys.argv[1]), error
        assert [queue.name for queue in queueduct.queues()] == []
    else:
        raise SystemExit(f"{name} was made of what was refused")
print("fine")
"""


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("call", ["FALLOCATE", "FTRUNCATE"])
def test_a_create_that_is_refused_says_so_and_leaves_nothing(monkeypatch, children, call, error):
    preload(monkeypatch, "refuse", **{f"REFUSE_{call}": error})
    assert children.run(CREATE, error) == "fine\n"
