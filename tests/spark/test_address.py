"""Addresses: a queue by directory, name and id, opened by any thread without a change to the process."""

import os
import threading

import pytest

import queueduct
from queueduct.spark.address import Address, cached_queue

ROUNDS = 50


def test_threads_open_queues_of_one_name_in_two_directories(tmp_path, queue_dir):
    """The process's own directory is never another one, not even for a moment."""
    folders = [tmp_path / "left", tmp_path / "right"]
    queues = [queueduct.EventQueue.create("ticks", item="i8", directory=folder) for folder in folders]
    seen, failures, is_over = set(), [], threading.Event()

    def watch():
        while not is_over.is_set():
            seen.add(os.environ.get("QUEUEDUCT_DIR"))

    def open_often(folder, queue):
        try:
            for _ in range(ROUNDS):
                with Address("ticks", str(folder)).open() as opened:
                    assert (opened.directory, opened.segment_id) == (folder, queue.segment_id)
                with pytest.raises(queueduct.QueueNotFound):
                    Address("ticks").open()
        except BaseException as error:
            failures.append(error)

    watcher = threading.Thread(target=watch)
    openers = [threading.Thread(target=open_often, args=pair) for pair in zip(folders, queues, strict=True)]
    for thread in (watcher, *openers):
        thread.start()
    for thread in openers:
        thread.join()
    is_over.set()
    watcher.join()
    assert failures == []
    assert seen == {str(queue_dir)}


def test_an_exact_address_is_good_from_any_directory_and_for_one_queue_only(tmp_path, monkeypatch):
    monkeypatch.setenv("QUEUEDUCT_DIR", str(tmp_path / "here"))
    with queueduct.EventQueue.create("ticks", item="i8") as ticks:
        exact = Address("ticks").exactly(ticks)
        assert (exact.directory, exact.segment) == (str(ticks.directory), ticks.segment_id.hex())
        monkeypatch.setenv("QUEUEDUCT_DIR", str(tmp_path / "elsewhere"))
        with exact.open() as opened:
            assert opened.segment_id == ticks.segment_id
        ticks.unlink()
        queueduct.EventQueue.create("ticks", item="i8", directory=exact.directory).close()
        with pytest.raises(queueduct.QueueReplaced, match=f"wanted id {exact.segment}, found"):
            exact.open()


def test_tasks_of_a_process_read_through_one_handle(tmp_path):
    with queueduct.EventQueue.create("ticks", item="i8", directory=tmp_path) as ticks:
        ticks.put_many(range(10))
        exact = Address("ticks", str(tmp_path)).exactly(ticks)
        assert [exact.read(start, start + 5).tolist() for start in (0, 5)] == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
        assert cached_queue(exact) is cached_queue(exact)
        cached_queue(exact).close()
    cached_queue.cache_clear()
