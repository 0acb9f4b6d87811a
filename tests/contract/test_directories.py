"""Every kind in a directory that the caller names: QUEUEDUCT_DIR is the default, and is never written."""

from __future__ import annotations

import os
import pickle
import stat
import threading
from pathlib import Path

import pytest

import queueduct
from queueduct import OverwritingQueue, QueueExists, QueueNotFound
from tests.support.kinds import CLASSES
from tests.support.published import Published

MISSING = "no-such-directory"
ROUNDS = 30


@pytest.fixture(params=CLASSES)
def queue_class(request):
    return CLASSES[request.param]


def first_of(queue):
    """The item that was put first."""
    return queue.read(0, 1)[0] if queue.kind == "events" else queue.get()


def test_a_queue_is_where_its_creator_says(queue_class, tmp_path, queue_dir):
    with queue_class.create("q", item="i8", directory=tmp_path) as queue:
        queue.put(7)
        assert queue.directory == tmp_path
        assert os.listdir(tmp_path) == ["q"]
        assert os.listdir(queue_dir) == []
        with pytest.raises(QueueNotFound, match=str(queue_dir)):
            queue_class.open("q")
        for opened in (queue_class.open("q", directory=str(tmp_path)), queueduct.open("q", directory=tmp_path)):
            with opened:
                assert (opened.directory, opened.segment_id) == (tmp_path, queue.segment_id)
                assert opened.qsize() == 1
        assert first_of(queue) == 7


def test_two_directories_have_queues_of_one_name(queue_class, tmp_path, queue_dir):
    with (
        queue_class.create("q", item="i8") as here,
        queue_class.create("q", item="i8", directory=tmp_path) as there,
    ):
        here.put(1)
        there.put(2)
        assert (here.directory, there.directory) == (queue_dir, tmp_path)
        assert here.segment_id != there.segment_id
        assert (first_of(here), first_of(there)) == (1, 2)
        for listed in (queueduct.queues(), queueduct.queues(directory=tmp_path)):
            assert [info[:2] for info in listed] == [("q", here.kind)]
        queueduct.unlink("q", directory=tmp_path)
        assert queueduct.queues(directory=tmp_path) == []
        here.unlink()
        assert queueduct.queues() == []


def test_a_queue_unlinks_its_own_name_wherever_that_is(queue_class, tmp_path):
    with queue_class.create("q", directory=tmp_path) as queue, queue_class.create("q"):
        queue.unlink()
    assert os.listdir(tmp_path) == []
    assert [info.name for info in queueduct.queues()] == ["q"]


def test_exist_ok_looks_in_the_same_directory(queue_class, tmp_path):
    with queue_class.create("q", directory=tmp_path) as queue:
        with queue_class.create("q", directory=tmp_path, exist_ok=True) as again:
            assert again.segment_id == queue.segment_id
        with pytest.raises(QueueExists, match=str(tmp_path)):
            queue_class.create("q", directory=tmp_path)


def test_a_pickle_finds_its_queue_from_a_process_with_another_directory(queue_class, tmp_path, children):
    with queue_class.create("q", item="i8", directory=tmp_path) as queue:
        data = pickle.dumps(queue)
        told = children.run(
            "import os, pickle\n"
            f"os.environ['QUEUEDUCT_DIR'] = {str(tmp_path / 'other')!r}\n"
            f"with pickle.loads({data!r}) as queue:\n"
            "    queue.put(5)\n"
            "    print(queue.directory, queue.segment_id.hex())"
        )
        assert told == f"{tmp_path} {queue.segment_id.hex()}\n"
        assert first_of(queue) == 5


def test_a_queue_without_a_name_has_no_directory_and_no_id():
    for queue in (queueduct.BoundedQueue(4), queueduct.GrowingQueue(), queueduct.EventQueue()):
        with queue:
            assert (queue.directory, queue.segment_id) == (None, None)


def test_a_segment_id_tells_a_queue_from_its_successor(queue_class):
    with queue_class.create("q") as queue:
        first = queue.segment_id
        assert (type(first), len(first)) == (bytes, 16)
        queue.unlink()
    with queue_class.create("q") as queue:
        assert queue.segment_id != first


def test_threads_use_two_directories_at_the_same_time(queue_class, tmp_path, queue_dir):
    """Each thread sees its own directory only, and the process's environment stays as it is."""
    folders = [tmp_path / "left", tmp_path / "right", None]
    failures = []

    def work(folder):
        expected = queue_dir if folder is None else folder
        try:
            for number in range(ROUNDS):
                with queue_class.create(f"q{number}", item="i8", directory=folder) as queue:
                    with queueduct.open(f"q{number}", directory=folder) as again:
                        assert (queue.directory, again.segment_id) == (expected, queue.segment_id)
                    assert [info.name for info in queueduct.queues(directory=folder)] == [f"q{number}"]
                    assert os.environ["QUEUEDUCT_DIR"] == str(queue_dir)
                queueduct.unlink(f"q{number}", directory=folder)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(folder,)) for folder in folders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_create_makes_a_private_directory_and_nothing_else_makes_one(queue_class, tmp_path):
    folder = tmp_path / MISSING / "deeper"
    for use in (queue_class.open, queueduct.open, queueduct.unlink):
        with pytest.raises(QueueNotFound, match=MISSING):
            use("q", directory=folder)
    with pytest.raises(FileNotFoundError, match=MISSING):
        queueduct.queues(directory=folder)
    assert not folder.parent.exists()
    old = os.umask(0)
    try:
        queue_class.create("q", directory=folder).close()
    finally:
        os.umask(old)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_relative_directory_is_meant_where_the_process_is(queue_class, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with queue_class.create("q", directory="below") as queue:
        assert queue.directory == tmp_path / "below"
        monkeypatch.chdir("/")
        with pickle.loads(pickle.dumps(queue)) as again:
            assert again.directory == tmp_path / "below"


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        (b"/tmp", TypeError, "directory must be a str or a path: directory=b'/tmp'"),
        (7, TypeError, "directory must be a str or a path: directory=7"),
        (True, TypeError, "directory must be a str or a path"),
        ("", ValueError, "directory must not be empty"),
        (Path(__file__), NotADirectoryError, "is not a directory: .*test_directories.py; give another"),
    ],
)
def test_a_bad_directory_is_refused_by_every_call(given, error, match):
    calls = [queue_class.create for queue_class in CLASSES.values()]
    calls += [queue_class.open for queue_class in CLASSES.values()]
    calls += [OverwritingQueue.adopt, queueduct.open, queueduct.unlink]
    for call in calls:
        with pytest.raises(error, match=match):
            call("q", directory=given)
    with pytest.raises(error, match=match):
        queueduct.queues(directory=given)


def test_a_directory_is_given_by_name_only():
    for call in (queueduct.open, queueduct.unlink, *(queue_class.open for queue_class in CLASSES.values())):
        with pytest.raises(TypeError):
            call("q", "/tmp")
    with pytest.raises(TypeError):
        queueduct.queues("/tmp")


def test_a_foreign_file_is_adopted_in_its_directory(tmp_path):
    Published.create(tmp_path / "feed", 4, 8).close()
    with OverwritingQueue.adopt("feed", directory=tmp_path) as feed:
        assert feed.directory == tmp_path
