"""A create makes a queue or leaves nothing: no name, no descriptor, no mapping. So does an open, without the queue."""

from __future__ import annotations

import contextlib
import errno
import gc
import io
import mmap
import os
import resource
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import queueduct
from queueduct import OverwritingQueue
from queueduct.segments import creation as creating
from queueduct.segments import segment
from tests.edges.kinds import KINDS, item

QUEUEDUCT = str(Path(queueduct.__file__).parent)

# What a create, an open or an adopt calls of the system, by module.
CALLS: list[tuple[Any, str]] = [
    (os, "open"),
    (os, "link"),
    (os, "unlink"),
    (os, "close"),
    (os, "stat"),
    (os, "fstat"),
    (os, "mkdir"),
    (os, "truncate"),
    (os, "posix_fallocate"),
    (os, "pwrite"),
    (os, "pread"),
    (mmap, "mmap"),
    (secrets, "token_bytes"),
    (io, "open"),
]
HAVE_EFFECT_FIRST = {"close", "unlink"}  # a descriptor that the test keeps from being closed would be the test's leak

# Where one line closes what it holds, or removes a name that nobody needs: the interrupt is one line late there.
LAST_STEPS = {"close", "__del__", "__exit__", "withdraw"}

FAILURES = {
    "EMFILE": lambda: OSError(errno.EMFILE, "injected"),
    "ENOMEM": lambda: OSError(errno.ENOMEM, "injected"),
    "interrupt": KeyboardInterrupt,
    "MemoryError": MemoryError,
}


class Injection:
    """Lets the n-th of all system calls fail; with ``is_late`` after it has been made."""

    def __init__(self, patch: pytest.MonkeyPatch, failing: int, failure: Callable[[], BaseException], is_late: bool):
        self.calls = 0
        self.failing = failing
        self.failure = failure
        self.is_late = is_late
        self.is_on = True
        for module, name in CALLS:
            patch.setattr(module, name, self.wrapped(name, getattr(module, name)))

    def wrapped(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            number, self.calls = self.calls, self.calls + self.is_on
            if not self.is_on or number != self.failing:
                return real(*args, **kwargs)
            if name in HAVE_EFFECT_FIRST or (self.is_late and name not in ("open", "mmap")):
                real(*args, **kwargs)
            raise self.failure()

        return call


def held(folder: Path) -> tuple[list[str], list[str], list[str]]:
    """Names in the folder, descriptors into it, mappings of it."""
    gc.collect()
    descriptors = []
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            target = os.readlink(f"/proc/self/fd/{number}")
            if str(folder) in target:
                descriptors.append(target)
    mappings = [line for line in Path("/proc/self/maps").read_text().splitlines() if str(folder) in line]
    return sorted(os.listdir(folder)), descriptors, mappings


NOTHING: tuple[list[str], list[str], list[str]] = ([], [], [])


def injected(folder: Path, work: Callable[[], Any], failure: str, is_late: bool, kept: list[str]) -> int:
    """Run the work with each of its calls failing in turn; how many that were."""
    failing = 0
    while True:
        with pytest.MonkeyPatch.context() as patch:
            injection = Injection(patch, failing, FAILURES[failure], is_late)
            try:
                done = work()
            except BaseException as error:
                done = None
                assert injection.calls > failing, f"{error!r} is not what was injected"
            finally:
                injection.is_on = False
        if done is not None:
            done.close()
            del done
            if injection.calls <= failing:
                return failing
        assert held(folder)[1:] == ([], []), f"call {failing} of {failure}"
        if sorted(os.listdir(folder)) != kept:  # what failed was of no consequence, and it made a queue
            assert os.listdir(folder) == ["q"], f"call {failing} of {failure}"
            queueduct.unlink("q")
        failing += 1


@pytest.mark.parametrize("has_unnamed_files", [True, False], ids=["unnamed", "temporary"])
@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("kind", KINDS)
def test_whichever_call_fails_a_create_returns_a_queue_or_leaves_nothing(
    kind, failure, has_unnamed_files, queue_dir, monkeypatch
):
    if not has_unnamed_files:
        without_unnamed_files(monkeypatch)
    created = []

    def work() -> Any:
        created.clear()
        made = KINDS[kind].create("q")
        created.append(True)
        return made

    for is_late in (False, True):
        failing = 0
        while True:
            with pytest.MonkeyPatch.context() as patch:
                injection = Injection(patch, failing, FAILURES[failure], is_late)
                with contextlib.suppress(BaseException):
                    work().close()
                injection.is_on = False
            if created:  # the failure was of no consequence, or there was none
                assert os.listdir(queue_dir) == ["q"]
                queueduct.unlink("q")
            assert held(queue_dir) == NOTHING, f"call {failing}, late={is_late}"
            if injection.calls <= failing:
                break
            failing += 1
        assert failing > 10
        q = KINDS[kind].create("q")
        q.put(item(1))
        q.close()
        q.unlink()


def without_unnamed_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a file system that has none."""
    real = os.open

    def opened(path: Any, flags: int, *rest: Any, **more: Any) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "injected")
        return real(path, flags, *rest, **more)

    monkeypatch.setattr(os, "open", opened)


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("kind", KINDS)
def test_an_open_that_fails_anywhere_leaves_all_as_it_was(kind, failure, queue_dir):
    q = KINDS[kind].create("q")
    q.put(item(7))
    q.close()
    for work in (lambda: queueduct.open("q"), lambda: KINDS[kind].create("q", exist_ok=True)):
        assert injected(queue_dir, work, failure, False, ["q"]) > 3
    with queueduct.open("q") as q:
        assert KINDS[kind].consumer(q).get(timeout=10) == item(7)


def published_file(folder: Path) -> bytes:
    """A file of the published format, as another program makes one: what ours has before its own part."""
    with OverwritingQueue.create("q", 4, message_bytes=64) as q:
        q.put(bytes(64))
    data = (folder / "q").read_bytes()
    data = data[: segment.find_header(folder / "q", data)]
    (folder / "q").unlink()
    return data


@pytest.mark.parametrize("failure", FAILURES)
def test_whichever_call_fails_an_adopt_leaves_the_file_as_it_was(failure, queue_dir):
    data = published_file(queue_dir)
    path = queue_dir / "q"
    for is_late in (False, True):
        failing = 0
        while True:
            path.write_bytes(data)
            is_adopted = False
            with pytest.MonkeyPatch.context() as patch:
                injection = Injection(patch, failing, FAILURES[failure], is_late)
                with contextlib.suppress(BaseException):
                    OverwritingQueue.adopt("q").close()
                    is_adopted = True
                injection.is_on = False
            assert held(queue_dir) == (["q"], [], []), f"call {failing}, late={is_late}"
            if not is_adopted and path.read_bytes() != data:
                # only behind the last step: then it is adopted, and open() finds it
                with queueduct.open("q") as q:
                    assert q.get(timeout=10) == bytes(64)
            elif not is_adopted:
                with OverwritingQueue.adopt("q") as q:
                    assert q.get(timeout=10) == bytes(64)
            if injection.calls <= failing:
                break
            failing += 1
        assert failing > 5


def lines_of(work: Callable[[], Any], interrupted: int) -> int:
    """Run the work, and interrupt it before the n-th line of queueduct's own Python; how many lines ran."""
    lines = 0

    def trace(frame: Any, event: str, arg: Any) -> Any:
        nonlocal lines
        if not frame.f_code.co_filename.startswith(QUEUEDUCT) or frame.f_code.co_name in LAST_STEPS:
            return None
        if event == "line":
            lines += 1
            if lines - 1 == interrupted:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return lines


@pytest.mark.parametrize("has_unnamed_files", [True, False], ids=["unnamed", "temporary"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupt_before_any_line_of_create_leaves_nothing(
    kind, has_unnamed_files, queue_dir, monkeypatch, is_long
):
    if not has_unnamed_files:
        without_unnamed_files(monkeypatch)
    total = lines_of(lambda: KINDS[kind].create("q").close(), -1)
    queueduct.unlink("q")
    assert total > 50
    last = total - 40  # from about here on there is something to undo
    for number in range(total) if is_long else (*range(0, last, 9), *range(last, total)):
        with contextlib.suppress(KeyboardInterrupt):
            lines_of(lambda: KINDS[kind].create("q").close(), number)
            assert os.listdir(queue_dir) == ["q"]
            queueduct.unlink("q")
        assert held(queue_dir) == NOTHING, f"line {number} of {total}"


@pytest.mark.parametrize("kind", KINDS)
def test_with_any_number_of_descriptors_left_a_create_works_or_leaves_nothing(kind, queue_dir, children):
    def work() -> None:
        spare = [os.open("/dev/null", os.O_RDONLY) for _ in range(50)]
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        outcomes = []
        for left in range(10):
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(spare) + 1 + left, hard))
            try:
                KINDS[kind].create("q").close()
                outcomes.append(True)
            except OSError as error:
                assert error.errno == errno.EMFILE
                outcomes.append(False)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            assert os.listdir(queue_dir) == (["q"] if outcomes[-1] else [])
            if outcomes[-1]:
                queueduct.unlink("q")
            assert held(queue_dir) == NOTHING
        assert (outcomes[0], outcomes[-1]) == (False, True)
        assert outcomes == sorted(outcomes)

    assert children.wait(children.fork(work)) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_without_address_space_a_create_leaves_nothing_and_says_what_to_raise(kind, queue_dir, children):
    def work() -> None:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        options = {"participants": 4096} if kind in ("bounded", "slots", "overwriting") else {}
        for spare in (1 << 12, 1 << 16):
            resource.setrlimit(resource.RLIMIT_AS, (used + spare, hard))
            try:
                KINDS[kind].create("q", **options).close()
                raise AssertionError("there was address space")
            except MemoryError:  # Python itself had none
                pass
            except OSError as error:
                assert error.errno == errno.ENOMEM
                assert "ulimit -v" in str(error)
            finally:
                resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
            assert held(queue_dir) == NOTHING
        KINDS[kind].create("q", **options).close()

    assert children.wait(children.fork(work)) == 0


def test_a_create_that_fails_does_not_remove_the_queue_of_somebody_else(queue_dir):
    with queueduct.BoundedQueue.create("q", 8) as first:
        first.put(b"kept")
        with pytest.raises(queueduct.QueueExists, match="open it, or unlink it first"):
            queueduct.BoundedQueue.create("q", 8)
        with pytest.raises(queueduct.QueueExists, match="of another shape"):
            queueduct.BoundedQueue.create("q", 16, exist_ok=True)
    with queueduct.open("q") as again:
        assert again.get(timeout=10) == b"kept"


def test_what_is_unlinked_between_the_two_looks_of_exist_ok_is_created(queue_dir, monkeypatch):
    queueduct.BoundedQueue.create("q", 8).close()
    real = segment.open_segment

    def late(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.setattr(creating.segment, "open_segment", real)
        queueduct.unlink("q")
        return real(*args, **kwargs)

    monkeypatch.setattr(creating.segment, "open_segment", late)
    with queueduct.BoundedQueue.create("q", 8, exist_ok=True) as q:
        q.put(np.bytes_(b"x"))
    assert os.listdir(queue_dir) == ["q"]


@pytest.fixture(autouse=True)
def warm(queue_dir: Path) -> None:
    """Whatever is read once in a process has been read: the boot's id, the codecs."""
    for kind in KINDS.values():
        with kind.create("warm") as q:
            q.put(item(0))
        q.unlink()
