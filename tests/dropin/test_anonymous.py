"""Queues without a name: they go with their last user, however it ends."""

import os
import signal
import subprocess
import sys

import pytest

from queueduct import GrowingQueue

pytestmark = pytest.mark.timeout(60)


def run(code, directory, **options):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=40,
        env={**os.environ, "QUEUEDUCT_DIR": str(directory)},
        **options,
    )


KILLED = """
import os, signal, multiprocessing, queueduct, queueduct.multiprocessing as qm
context = multiprocessing.get_context("fork")
def hold(q, ready):
    q.put(1); ready.put(1); signal.pause()
queues = [qm.Queue(), qm.Queue(2), qm.JoinableQueue(), qm.SimpleQueue(), queueduct.BoundedQueue.create(None, 4)]
ready = qm.Queue()
children = [context.Process(target=hold, args=(q, ready)) for q in queues[:4]]
for child in children: child.start()
for child in children: ready.get()
os.killpg(0, signal.SIGKILL)
"""


def test_nothing_is_left_after_a_kill_of_all_users(tmp_path):
    done = run(KILLED, tmp_path, start_new_session=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert os.listdir(tmp_path) == []


OUTLIVES = """
import os, sys, multiprocessing, queueduct.multiprocessing as qm
q, answers = qm.Queue(3), qm.SimpleQueue()
if os.fork() == 0:
    if os.fork() == 0:  # the parent of this one ends at once
        assert q.get(timeout=20) == "from the first"
        q.put("from the last")
        assert q.get(timeout=20) == "from the last"
        print("survived", flush=True)
        os._exit(0)
    os._exit(0)
q.put("from the first")
"""


def test_a_child_that_outlives_its_parent_keeps_the_queue(tmp_path):
    done = run(OUTLIVES, tmp_path)  # ends when the last holder of its output has ended
    assert (done.returncode, done.stdout, done.stderr) == (0, "survived\n", "")
    assert os.listdir(tmp_path) == []


LEFT_OPEN = """
import queueduct.multiprocessing as qm
q = qm.Queue(10); q.put("never got"); q.put([1] * 1000)
j = qm.JoinableQueue(); j.put(1); j.get()
"""


def test_a_process_exits_without_a_close_and_says_nothing(tmp_path):
    done = run(LEFT_OPEN, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("call", ["q.get()", "full.put(1)", "joined.join()"])
def test_ctrl_c_ends_every_wait(tmp_path, call):
    code = f"""
import os, signal, threading, queueduct.multiprocessing as qm
q, full, joined = qm.Queue(), qm.Queue(1), qm.JoinableQueue()
full.put(0); joined.put(0)
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    {call}
except KeyboardInterrupt:
    q.put("usable"); print(q.get(), full.get(), joined.get())
"""
    done = run(code, tmp_path)
    assert (done.stdout, done.stderr) == ("usable 0 0\n", "")


def test_a_queue_without_a_name_is_in_no_list_and_cannot_be_unlinked(tmp_path):
    with GrowingQueue.create(None, directory=tmp_path) as q:
        assert q.name is None
        assert os.listdir(tmp_path) == []
        with pytest.raises(ValueError, match="nothing to unlink"):
            q.unlink()


def test_after_closed_descriptors_a_spawn_says_what_to_do(tmp_path):
    code = """
import multiprocessing, os, queueduct, queueduct.multiprocessing as qm
q = qm.Queue(); q.put(1)
os.closerange(3, 200)
held = [os.open("/dev/null", os.O_RDONLY) for _ in range(20)]
assert q.get() == 1
try:
    multiprocessing.get_context("spawn").Process(target=print, args=(q,)).start()
except queueduct.QueueClosed as error:
    assert "make the queue afterwards" in str(error)
    print("refused")
del q
for fd in held: os.close(fd)
"""
    done = run(code, tmp_path)
    assert (done.stdout, done.stderr) == ("refused\n", "")


def test_without_files_without_names_the_queue_lives_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "O_TMPFILE", os.O_DIRECTORY | os.O_WRONLY)  # EISDIR, as of such a file system
    with GrowingQueue.create(None, item=object, directory=tmp_path) as q:
        assert os.listdir(tmp_path) == []
        if os.fork() == 0:
            q.put("from the child")
            os._exit(0)
        assert q.get(timeout=20) == "from the child"
        os.wait()
