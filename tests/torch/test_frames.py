"""Frames of a SlotQueue as arrays, and as tensors where torch is installed: each goes to one worker, until shutdown."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import queueduct
from queueduct.torch import SlotDataset, frames, share

FRAME = np.dtype(("f4", (4, 8)))


def filled(count, item=FRAME, capacity=64, name="frames"):
    queue = queueduct.SlotQueue.create(name, capacity, item=item)
    for n in range(count):
        queue.put(np.full((4, 8), n, "f4"))
    return queue


def test_arrays_come_in_order_until_the_queue_is_shut_down():
    with filled(5) as queue:
        queue.shutdown()
        got = list(frames("frames"))
        assert [frame[0, 0] for frame in got] == [0, 1, 2, 3, 4]
        assert got[0].shape == (4, 8)
        got[0][...] = 7  # it is a copy, to be written to
        assert queue.stats().free == 64


def test_an_array_waits_for_its_frame():
    with filled(0) as queue:
        put = threading.Timer(0.05, lambda: (queue.put(np.ones((4, 8), "f4")), queue.shutdown()))
        put.start()
        assert [frame.sum() for frame in frames("frames", timeout=60)] == [32]
        put.join()


def test_no_frame_in_time_is_empty_and_a_number_of_items_is_enough():
    with filled(3) as queue:
        assert len(list(frames("frames", items=2))) == 2
        assert list(frames("frames", items=0)) == []
        with pytest.raises(queueduct.Empty):
            list(frames("frames", timeout=0.01))
        assert queue.qsize() == 0


def test_a_loop_that_is_left_takes_no_further_frame():
    with filled(3) as queue:
        for _ in frames("frames"):
            break
        assert queue.qsize() == 2


def test_bytes_become_arrays_of_u1_and_objects_are_refused():
    with queueduct.SlotQueue.create("raw", 4, item=bytes, slot_bytes=16) as queue:
        queue.put(b"\1\2")
        queue.shutdown()
        (frame,) = frames("raw")
        assert (frame.dtype, frame.tolist()) == (np.uint8, [1, 2])
    queueduct.SlotQueue.create("objects", 4, item=object).close()
    with pytest.raises(ValueError, match="pickled objects"):
        next(frames("objects"))


@pytest.mark.parametrize("items", [-1, 1.5, True, "2"])
def test_bad_numbers_of_items_are_refused(items):
    with filled(1) as queue, pytest.raises(ValueError, match="items must be"):
        next(frames("frames", items=items))
    assert queueduct.open("frames").qsize() == 1
    queue.close()


def test_shares_of_workers_add_up():
    for items in range(20):
        assert sum(share(items, worker, 3) for worker in range(3)) == items
    assert share(None, 0, 3) is None


def test_several_processes_share_the_frames(children):
    take = "from queueduct.torch import frames; print(*[int(frame[0, 0]) for frame in frames('frames')])"
    with filled(0) as queue:
        takers = [children.start(take) for _ in range(3)]
        for n in range(300):
            queue.put(np.full((4, 8), n, "f4"))
        queue.shutdown()
        got = [list(map(int, taker.communicate(timeout=60)[0].split())) for taker in takers]
    assert sorted(number for part in got for number in part) == list(range(300))
    assert all(part == sorted(part) for part in got)


def test_without_torch_the_dataset_says_what_to_install(children):
    code = (
        "import sys\n"
        "sys.modules['torch'] = None\n"
        "from queueduct.torch import SlotDataset\n"
        "try:\n"
        "    SlotDataset('frames')\n"
        "except ImportError as error:\n"
        "    print(error)"
    )
    assert children.run(code) == "SlotDataset needs torch, which is not installed: pip install torch\n"


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="torch is no requirement: install it to run this")


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_gets_every_frame_once(torch, workers):
    with filled(50) as queue:
        queue.shutdown()
        loader = torch.utils.data.DataLoader(SlotDataset("frames"), batch_size=4, num_workers=workers)
        batches = list(loader)
    assert batches[0].shape == (4, 4, 8)
    assert sorted(int(value) for batch in batches for value in batch[:, 0, 0]) == list(range(50))


def test_workers_of_a_loader_take_a_number_of_items_together(torch):
    with filled(50) as queue:
        loader = torch.utils.data.DataLoader(SlotDataset("frames", items=11), batch_size=None, num_workers=2)
        assert len(list(loader)) == 11
        assert queue.qsize() == 39


def test_a_spawned_worker_opens_the_queue_itself(torch):
    with filled(5) as queue:
        queue.shutdown()
        loader = torch.utils.data.DataLoader(
            SlotDataset("frames"), batch_size=None, num_workers=1, multiprocessing_context="spawn"
        )
        assert [int(frame[0, 0]) for frame in loader] == [0, 1, 2, 3, 4]


def test_records_become_dicts_of_tensors_and_other_types_are_refused(torch):
    sample = np.dtype([("image", ">f4", (2, 2)), ("label", "i8")])
    with queueduct.SlotQueue.create("samples", 4, item=sample) as queue:
        queue.put((np.arange(4).reshape(2, 2), 3))
        queue.shutdown()
        (one,) = SlotDataset("samples")
        assert one["image"].tolist() == [[0, 1], [2, 3]]
        assert one["label"].item() == 3
    queueduct.SlotQueue.create("texts", 4, item=np.dtype([("text", "S4")])).close()
    with pytest.raises(TypeError, match="no tensor for the field 'text'"):
        SlotDataset("texts")
