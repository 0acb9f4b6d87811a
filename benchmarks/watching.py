"""What it costs queues to be watched, and what watching costs: 100 queues at the default interval.

Rounds alternate: unwatched, watched by `top`, by `web` with a viewer, and, as a control, a `web` that watches as many
other queues: what it costs to share the machine with one, and not to be looked at.

python -m benchmarks.watching              about four minutes
python -m benchmarks.watching --rounds 3   shorter
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import http.client
import os
import pty
import re
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import queueduct

QUEUES = 100
PARTICIPANTS = 3
COMMAND = str(Path(sys.executable).with_name("queueduct"))


def make(directory: Path) -> None:
    for number in range(QUEUES):
        name = f"q{number:03}"
        if number % 2:
            queueduct.EventQueue.create(name, item="f8", max_bytes=1 << 20, directory=directory).close()
        else:
            queueduct.BoundedQueue.create(name, 1024, item="f8", directory=directory).close()


def take_part(directory: Path, ready: int) -> None:
    """Becomes a participant of every queue, and a reader of every log."""
    handles = []
    for info in queueduct.queues(directory=directory):
        q = queueduct.open(info.name, directory=directory)
        q.put(1.0)
        handles.append(q)
        if isinstance(q, queueduct.EventQueue):
            handles.append(q.subscribe())
    os.write(ready, b"!")
    time.sleep(1e6)


def passes(directory: Path, name: str, seconds: float) -> float:
    """Items a second through one queue, one a call, in this thread: what a watcher could disturb."""
    with queueduct.BoundedQueue.open(name, directory=directory) as q:
        while q.try_get() is not None:
            pass
        count = 0
        began = time.process_time()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for _ in range(1000):
                q.put(1.0)
                q.get()
            count += 1000
        return count / (time.process_time() - began)


@contextmanager
def watched_by(watcher: str, directory: Path) -> Iterator[int | None]:
    """Yields the watcher's pid."""
    if watcher == "nobody":
        yield None
        return
    viewed = threading.Event()
    if watcher == "top":
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", QUEUES + 10, 200, 0, 0))
        command = [COMMAND, "top", "--directory", str(directory)]
        process = subprocess.Popen(command, stdin=slave, stdout=slave, env={**os.environ, "TERM": "xterm-256color"})
        os.close(slave)
        viewer = threading.Thread(target=see, args=(master, viewed))
    else:
        command = [COMMAND, "web", "--port", "0", "--no-token", "--directory", str(directory)]
        served = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        process = served
        found = re.search(r":(\d+)/", served.stdout.readline() if served.stdout else "")
        assert found is not None
        viewer = threading.Thread(target=view, args=(int(found[1]), viewed))
    viewer.start()
    viewed.wait()
    try:
        yield process.pid
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()
        viewer.join()


def see(terminal: int, viewed: threading.Event) -> None:
    """Takes what is drawn, as a terminal does."""
    try:
        while text := os.read(terminal, 65536):
            if b"q099" in text:
                viewed.set()
    except OSError:  # the other side has closed it
        os.close(terminal)


def view(port: int, viewed: threading.Event) -> None:
    """Takes events as a page does."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/api/events")
    answer = connection.getresponse()
    with contextlib.suppress(OSError):
        while answer.readline():
            viewed.set()
    connection.close()


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=4.0)
    options = parser.parse_args()
    base = Path(tempfile.mkdtemp(prefix="queueduct-bench-", dir="/dev/shm"))
    directory, other = base / "watched", base / "other"
    ready, told = os.pipe()
    crew = []
    for folder in (directory, other):
        folder.mkdir()
        make(folder)
        for _ in range(PARTICIPANTS):
            if (pid := os.fork()) == 0:
                take_part(folder, told)
            crew.append(pid)
    for _ in crew:
        os.read(ready, 1)
    watchers = ("nobody", "top", "web", "web elsewhere")
    rates: dict[str, list[float]] = {watcher: [] for watcher in watchers}
    spent: dict[str, list[float]] = {watcher: [] for watcher in watchers[1:]}
    try:
        for number in range(options.rounds):
            for at in range(len(watchers)):  # each comes first, second, …
                watcher = watchers[(at + number) % len(watchers)]
                with watched_by(watcher, other if watcher == "web elsewhere" else directory) as pid:
                    before = processor_seconds(pid) if pid else 0.0
                    began = time.monotonic()
                    rates[watcher].append(passes(directory, "q000", options.seconds))
                    if pid:
                        spent[watcher].append((processor_seconds(pid) - before) / (time.monotonic() - began))
    finally:
        for pid in crew:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
        shutil.rmtree(base)
    alone = statistics.median(rates["nobody"])
    print(f"{QUEUES} queues, {PARTICIPANTS} participants each, {options.rounds} rounds of {options.seconds:g} s")
    print(f"put and get, one a call, unwatched: {alone / 1e6:.3f} million pairs a processor second")
    for watcher in watchers[1:]:
        ratios = sorted(mine / base for mine, base in zip(rates[watcher], rates["nobody"], strict=True))
        print(
            f"with {watcher}: {statistics.median(ratios):.3f} of that ({ratios[0]:.3f} to {ratios[-1]:.3f}); "
            f"{watcher} itself: {statistics.median(spent[watcher]):.3f} processor seconds a second"
        )


if __name__ == "__main__":
    main()
