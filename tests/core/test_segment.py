"""Segments as files: names, creation, what openers see, unlinking, and the directory."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import threading

import pytest

import queueduct
from queueduct import BoundedQueue, QueueExists, QueueNotFound
from queueduct.segments import segment
from tests.support.children import needs_root, open_descriptors
from tests.support.deadline import until

BAD_NAMES = {
    "empty": "",
    "slash": "/",
    "path": "a/b",
    "absolute": "/a",
    "parent": "..",
    "itself": ".",
    "hidden": ".x",
    "climbing": "../x",
    "nul": "a\0b",
    "only nul": "\0",
    "256 bytes": "x" * 256,
    "256 bytes of fewer characters": "ü" * 128,
    "lone surrogate": "\ud800",
}


@pytest.mark.parametrize("name", list(BAD_NAMES.values()), ids=list(BAD_NAMES))
@pytest.mark.parametrize(
    "use",
    [BoundedQueue.create, BoundedQueue.open, queueduct.open, queueduct.unlink],
    ids=["create", "open", "any", "unlink"],
)
def test_a_bad_name_is_a_value_error_everywhere(use, name, queue_dir):
    with pytest.raises(ValueError):  # noqa: PT011  (one rule each, and each with a message of its own)
        use(name)
    assert os.listdir(queue_dir) == []


@pytest.mark.parametrize("name", [None, 5, b"bytes", ["q"]])
@pytest.mark.parametrize("use", [BoundedQueue.create, BoundedQueue.open, queueduct.open, queueduct.unlink])
def test_a_name_that_is_no_text_is_a_type_error(use, name):
    if name is None and use == BoundedQueue.create:
        use(None, 4).close()  # a queue without a name, which is gone with its last user
        return
    with pytest.raises(TypeError, match="name must be a str"):
        use(name)


@pytest.mark.parametrize(
    "name", ["x" * 255, "ü" * 127, "日本語", "🐟", "a b", "a\nb", "-x", "~", "$x", "*", "x.y", "x..", "%s", "a\\b"]
)
def test_any_other_name_works(name, queue_dir):
    with BoundedQueue.create(name, 4) as q:
        assert q.name == name
        assert [info[:2] for info in queueduct.queues()] == [(name, "bounded")]
        q.put(b"1")
        assert queueduct.open(name).get() == b"1"
    queueduct.unlink(name)
    assert os.listdir(queue_dir) == []


def test_a_segment_is_private_to_its_user(queue_dir):
    os.umask(os.umask(0))
    old = os.umask(0)
    try:
        BoundedQueue.create("q", 4)
    finally:
        os.umask(old)
    assert stat.S_IMODE((queue_dir / "q").stat().st_mode) == 0o600


def test_a_directory_that_is_made_is_private_to_its_user(tmp_path, monkeypatch):
    folder = tmp_path / "deep" / "er"
    monkeypatch.setenv("QUEUEDUCT_DIR", str(folder))
    old = os.umask(0)
    try:
        BoundedQueue.create("q", 4)
    finally:
        os.umask(old)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_directory_on_a_disk_works_as_well(tmp_path, monkeypatch, children):
    monkeypatch.setenv("QUEUEDUCT_DIR", str(tmp_path))
    with BoundedQueue.create("q", 4) as q:
        q.put(b"1")
    assert children.run("import queueduct; print(queueduct.open('q').get())") == "b'1'\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["q"]


def test_a_directory_that_is_a_file_is_refused(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("QUEUEDUCT_DIR", str(tmp_path / "file"))
    for use in (lambda: BoundedQueue.create("q", 4), queueduct.queues, lambda: queueduct.open("q")):
        with pytest.raises(NotADirectoryError):
            use()


DEFAULT_DIRECTORY = """
import os, stat, sys, queueduct
user, how = int(sys.argv[1]), sys.argv[2]
del os.environ["QUEUEDUCT_DIR"]
path = f"/dev/shm/queueduct-{user}"
if how == "open to others":
    os.mkdir(path); os.chmod(path, 0o755); os.chown(path, user, user)
elif how == "somebody else's":
    os.mkdir(path, 0o700)
elif how == "a link":
    os.mkdir(path + "-target", 0o700); os.chown(path + "-target", user, user); os.symlink(path + "-target", path)
os.setgid(user)
os.setuid(user)
try:
    with queueduct.BoundedQueue.create("q", 4) as q:
        q.put(b"1")
    print(oct(stat.S_IMODE(os.stat(path).st_mode)), [info[:2] for info in queueduct.queues()])
except OSError as error:
    print(type(error).__name__)
"""


@needs_root
@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("new", "0o700 [('q', 'bounded')]"),
        ("open to others", "PermissionError"),
        ("somebody else's", "PermissionError"),
        ("a link", "NotADirectoryError"),
    ],
)
def test_the_default_directory_belongs_to_one_user_alone(children, how, expected):
    user = 54321
    paths = [f"/dev/shm/queueduct-{user}", f"/dev/shm/queueduct-{user}-target"]
    subprocess.run(["rm", "-rf", *paths], check=True)
    try:
        assert children.run(DEFAULT_DIRECTORY, user, how) == expected + "\n"
    finally:
        subprocess.run(["rm", "-rf", *paths], check=True)


@needs_root
def test_without_permission_everything_is_a_permission_error(children, queue_dir):
    BoundedQueue.create("q", 4)
    queue_dir.chmod(0o755)
    out = children.run(
        """
import os, queueduct
os.setuid(54321)
create = queueduct.BoundedQueue.create
for use in (lambda: queueduct.open("q"), lambda: create("new", 4), lambda: queueduct.unlink("q")):
    try:
        use()
    except PermissionError:
        print("refused")
print(queueduct.queues())
"""
    )
    assert out == "refused\n" * 3 + "[]\n"


def test_creating_what_exists_is_refused_and_harms_nobody():
    q = BoundedQueue.create("q", 4)
    q.put(b"1")
    with pytest.raises(QueueExists, match="open it, or unlink it first"):
        BoundedQueue.create("q", 8)
    with pytest.raises(FileExistsError):
        BoundedQueue.create("q", 4)
    assert q.get() == b"1"


def test_exist_ok_opens_a_queue_of_the_same_shape():
    q = BoundedQueue.create("q", 4, item="f8", participants=9)
    q.put(1.5)
    assert BoundedQueue.create("q", 4, item="f8", participants=9, exist_ok=True).get() == 1.5


@pytest.mark.parametrize(
    "other", [{"capacity": 8}, {"item": object}, {"item": "f8"}, {"slot_bytes": 128}, {"participants": 3}]
)
def test_exist_ok_refuses_a_queue_of_another_shape(other):
    BoundedQueue.create("q", 4)
    before = open_descriptors()
    with pytest.raises(QueueExists, match="of another shape"):
        BoundedQueue.create("q", **{"capacity": 4, **other}, exist_ok=True)
    assert open_descriptors() == before


def test_exist_ok_makes_what_is_not_there():
    assert BoundedQueue.create("q", 4, exist_ok=True).empty()


@pytest.mark.parametrize("exist_ok", [False, True])
def test_of_creators_that_race_one_wins(exist_ok):
    for round_ in range(20):
        outcomes = []
        start = threading.Barrier(4)

        def create(name=f"q{round_}", start=start, outcomes=outcomes):
            start.wait(30)
            try:
                outcomes.append(BoundedQueue.create(name, 4, exist_ok=exist_ok))
            except QueueExists:
                outcomes.append(None)

        threads = [threading.Thread(target=create) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        made = [q for q in outcomes if q is not None]
        assert len(made) == (4 if exist_ok else 1)
        made[0].put(b"1")
        assert made[-1].get() == b"1"


WITHOUT_UNNAMED_FILES = """
import errno, os
real_open = os.open
def without_unnamed_files(path, flags, *rest, **more):
    if flags & os.O_TMPFILE == os.O_TMPFILE:
        raise OSError(errno.EOPNOTSUPP, "not here")
    return real_open(path, flags, *rest, **more)
os.open = without_unnamed_files
"""


@pytest.mark.parametrize("files_have_names", [False, True], ids=["unnamed files", "named files"])
def test_nobody_ever_sees_a_half_written_segment(children, files_have_names, tmp_path):
    """One process creates and unlinks, 300 times or more; this one opens what it finds, which is always whole."""
    child = children.start(
        (WITHOUT_UNNAMED_FILES if files_have_names else "")
        + """
import os, sys, queueduct
made = 0
while made < 300 or not os.path.exists(sys.argv[1]):
    with queueduct.BoundedQueue.create("q", 4096) as q:
        q.unlink()
    made += 1
print("done", flush=True)
""",
        tmp_path / "enough",
    )
    opened = 0
    while child.poll() is None:
        try:
            with queueduct.open("q") as q:
                opened += 1
                assert q.capacity == 4096
        except QueueNotFound:
            continue
        if opened == 5:
            (tmp_path / "enough").touch()
    assert child.communicate() == ("done\n", "")
    assert opened >= 5
    assert queueduct.queues() == []


def test_a_creator_killed_between_its_two_names_leaves_a_whole_queue(children, queue_dir):
    """On a file system without unnamed files. The opener removes the name that was left over."""
    child = children.start(
        WITHOUT_UNNAMED_FILES
        + """
import os, signal, queueduct
os.unlink = lambda path: os.kill(os.getpid(), signal.SIGKILL)
queueduct.BoundedQueue.create("q", 4)
"""
    )
    assert child.wait() == -signal.SIGKILL
    left = sorted(os.listdir(queue_dir))
    assert len(left) == 2
    assert left[0].startswith(".new-")
    with queueduct.open("q") as q:
        q.put(b"1")
        assert q.get() == b"1"
    assert os.listdir(queue_dir) == ["q"]


def test_a_creator_that_is_killed_leaves_nothing_behind(children, queue_dir):
    """Killed at moments spread over the creation of a large segment."""
    code = """
import os, queueduct
print(len(os.listdir("/proc/self/fd")) - 1, flush=True)  # without the one that lists them
while True:
    q = queueduct.BoundedQueue.create("q", 1 << 18, slot_bytes=64)
    q.unlink()
    q.close()
"""
    for kill in range(8):
        child = children.start(code)
        before = int(child.stdout.readline())
        until(lambda child=child, before=before: len(os.listdir(f"/proc/{child.pid}/fd")) > before, "a creation")
        for _ in range(kill * 50):
            os.listdir(queue_dir)  # passes some time
        child.send_signal(signal.SIGKILL)
        child.wait(30)
        left = os.listdir(queue_dir)
        assert left in ([], ["q"])
        if left:  # it was complete by then
            queueduct.open("q").close()
            queueduct.unlink("q")


@pytest.fixture
def small_directory(tmp_path, monkeypatch):
    """A file system with 1 MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("cannot mount")
    monkeypatch.setenv("QUEUEDUCT_DIR", str(folder))
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@needs_root
def test_a_full_file_system_is_a_clean_error_and_nothing_is_left(small_directory):
    with pytest.raises(OSError, match="no room for a segment of") as caught:
        BoundedQueue.create("q", 1 << 16)
    assert caught.value.errno == errno.ENOSPC
    assert "QUEUEDUCT_DIR" in str(caught.value)
    assert os.listdir(small_directory) == []
    assert os.statvfs(small_directory).f_bfree * os.statvfs(small_directory).f_frsize > 900_000
    with BoundedQueue.create("q", 64, participants=8) as q:  # a small one still fits, and never needs more
        (small_directory / "rest").write_bytes(bytes(os.statvfs(small_directory).f_bavail * 4096))
        for _ in range(10):
            q.put_many([bytes(64)] * 64)
            assert len(q.get_many(64)) == 64


def test_a_limit_on_file_sizes_is_a_clean_error_too(children, queue_dir):
    out = children.run(
        """
import resource, queueduct
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    queueduct.BoundedQueue.create("q", 1 << 16)
except OSError as error:
    print("no room for a segment of" in str(error))
"""
    )
    assert out == "True\n"
    assert os.listdir(queue_dir) == []


@pytest.mark.parametrize("at", ["posix_fallocate", "pwrite", "link"])
def test_a_creation_that_fails_at_any_step_leaves_nothing(monkeypatch, queue_dir, at):
    before = open_descriptors()

    def fail(*args, **more):
        raise OSError(errno.EIO, "broken disk")

    with monkeypatch.context() as broken:
        broken.setattr(os, at, fail)
        with pytest.raises(OSError, match="broken disk"):
            BoundedQueue.create("q", 4)
    assert os.listdir(queue_dir) == []
    assert open_descriptors() == before


def test_no_descriptor_goes_through_an_exec():
    with BoundedQueue.create("q", 4) as q:
        q.put(b"1")
        leaked = subprocess.run(
            ["sh", "-c", "ls -l /proc/self/fd"], close_fds=False, capture_output=True, text=True, check=True
        )
        assert "queueduct" not in leaked.stdout
        for number in os.listdir("/proc/self/fd"):
            try:
                target = os.readlink(f"/proc/self/fd/{number}")
            except OSError:
                continue
            if "queueduct-test" in target:
                assert not os.get_inheritable(int(number))


def test_a_queue_that_is_not_there():
    for use in (queueduct.open, BoundedQueue.open, queueduct.unlink):
        with pytest.raises(QueueNotFound, match="there is no queue named 'q'"):
            use("q")
        with pytest.raises(FileNotFoundError):
            use("q")


def test_unlinking_leaves_those_who_have_it_open_alone(children):
    q = BoundedQueue.create("q", 4)
    other = BoundedQueue.open("q")
    queueduct.unlink("q")
    assert queueduct.queues() == []
    q.put(b"1")
    assert other.get() == b"1"
    pid = children.fork(lambda: q.put(b"from a fork"))
    assert children.wait(pid) == 0
    assert other.get() == b"from a fork"


def test_a_queue_made_after_an_unlink_is_another_one():
    old = BoundedQueue.create("q", 4)
    old.put(b"old")
    old.unlink()
    new = BoundedQueue.create("q", 4)
    assert new.empty()
    new.put(b"new")
    assert old.get() == b"old"
    assert new.get() == b"new"


def test_a_queue_without_a_name_has_nothing_to_unlink():
    with pytest.raises(ValueError, match="nothing to unlink"):
        BoundedQueue(4).unlink()


def test_opening_by_a_class_checks_the_kind_and_open_reads_it():
    BoundedQueue.create("q", 4)
    assert type(queueduct.open("q")) is BoundedQueue
    with pytest.raises(TypeError, match=r"use queueduct\.open"):
        segment.open_segment("q", kind="growing")
