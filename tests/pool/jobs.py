"""What the workers of these tests run. In a module of its own, so that every worker can import it."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import queueduct
from queueduct.lease import Lease


def use_folder(folder: str) -> None:
    os.environ["QUEUEDUCT_DIR"] = folder


def record(name: str, line: object) -> None:
    """Append a line to a file in the directory of queues, in one write."""
    path = Path(os.environ["QUEUEDUCT_DIR"]) / f".{name}"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


def recorded(name: str) -> list[str]:
    path = Path(os.environ["QUEUEDUCT_DIR"]) / f".{name}"
    return path.read_text().splitlines() if path.exists() else []


def double(item: Any) -> Any:
    return item * 2


def nothing(item: Any) -> None:
    return None


def slow_record(item: Any) -> Any:
    """Two milliseconds of work with an effect; a negative item kills its worker every time."""
    record("effects", item)
    if item < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.002)
    return item * 2


def misbehave(how: Any) -> Any:
    """End, fail or answer in every way that a function can."""
    record("tries", how)
    if how == "raise":
        raise ValueError("no good")
    if how == "base":
        raise BaseExceptionGroup("all", [KeyboardInterrupt()])
    if how == "exit":
        sys.exit(3)
    if how == "os._exit":
        os._exit(4)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    if how == "hang":
        time.sleep(3600)
    if how == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    if how == "fork":
        if os.fork() == 0:
            return "child"
        os.wait()
    return ANSWERS.get(how, how) if isinstance(how, str) else how


class RaisesWhenUnpickled:
    def __reduce__(self) -> Any:
        return explode, ()


class EndsWhoUnpickles:
    def __reduce__(self) -> Any:
        return os._exit, (5,)


class OddError(Exception):
    """Its pickle cannot be unpickled."""

    def __init__(self, first: object, second: object) -> None:
        super().__init__(first)


def explode() -> None:
    raise RuntimeError("cannot be unpickled")


def raise_odd(item: object) -> None:
    raise OddError(1, 2)


ANSWERS: dict[str, Any] = {
    "unpicklable": lambda: None,
    "poison result": RaisesWhenUnpickled(),
    "deadly result": EndsWhoUnpickles(),
    "array": np.arange(1000),
}


def fail_twice(item: Any) -> Any:
    record(f"tried-{item}", time.time())
    if len(recorded(f"tried-{item}")) < 3:
        raise ValueError(f"try {len(recorded(f'tried-{item}'))}")
    return item


def price(item: Any) -> float:
    return float(item["price"])


def record_pid(item: Any) -> int:
    record("pids", os.getpid())
    return os.getpid()


def start_badly(text: str) -> None:
    raise RuntimeError(text)


def note_start() -> None:
    record("starts", os.getpid())


def wait_for_file(item: Any) -> Any:
    """Block until the test lets go."""
    record("begun", item)
    while not recorded("go"):
        time.sleep(0.01)
    return item


def fail_once_in_a_batch(item: Any) -> Any:
    """Item 50 kills its worker each time; all others are quick."""
    record("quick", item)
    if item == 50:
        os._exit(1)
    return item


def sleep_long(item: Any) -> None:
    record("begun", os.getpid())
    time.sleep(600)


def is_alive(pid: int) -> bool:
    """Is it there, and not only waiting for its parent to take note of its end?"""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def arrive_with_ctrl_c() -> None:
    """Is unpickled until Ctrl-C has come, which must wait."""
    record("arriving", os.getpid())
    end = time.monotonic() + 30
    while signal.SIGINT not in signal.sigpending():
        assert time.monotonic() < end
        time.sleep(0.001)


class ArrivesWithCtrlC:
    def __reduce__(self) -> Any:
        return arrive_with_ctrl_c, ()


def leave_a_pool_open(item: Any) -> Any:
    pool = queueduct.Workers(None, double, processes=1, context="fork")
    LEFT_OPEN.append(pool)
    return pool.submit(item).result(30)


LEFT_OPEN: list[Any] = []


WATCHES: list[Any] = []


def count_leased(item: Any) -> int:
    """How many jobs are out just now."""
    if not WATCHES:
        WATCHES.append(queueduct.watch("jobs"))
    return WATCHES[0].stats().leased


def raise_long(item: int) -> None:
    raise ValueError("x" * item)


def release_nothing(folder: str) -> None:
    """From now on this worker tells its results, and stops before it releases the jobs."""
    use_folder(folder)
    Lease.release = lambda lease, count=None: time.sleep(600)  # type: ignore[method-assign]
