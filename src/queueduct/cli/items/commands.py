"""``get --exec``: a command for each item, without a shell, so that no item is ever read as part of a command."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

import queueduct
from queueduct.cli.outcome import Failure, Stopped, held_back
from queueduct.formats.json_lines import as_line, values_of

if TYPE_CHECKING:
    from queueduct.cli.items.get import Demand

__all__ = ["run_each"]

LONGEST_DELAY_SECONDS = 60.0


def run_each(
    demand: Demand,
    command: str,
    is_leased: bool,
    retries: int | None,
    retry_delay: float,
    dead_letters: str | None,
    directory: Path | None,
) -> None:
    """Runs the command for each item, one after the other."""
    runner = Runner(demand, command)
    with contextlib.ExitStack() as stack:
        letters = None
        if retries is not None:
            from queueduct.pool.options import letter_queue

            letters, _ = letter_queue(dead_letters or f"{demand.name}.dead", directory)
            stack.enter_context(letters)
        done = dead = 0
        is_idle = True
        try:
            while (lease := demand.next(1)) is not None:
                is_idle = False
                with lease:
                    if not is_leased:
                        lease.release()
                    failure = runner.tried(lease, retries, retry_delay)
                    if failure is not None and letters is not None:
                        with held_back():
                            letters.put(letter_of(demand.queue, lease, failure, retries or 1), timeout=retry_delay)
                            lease.release()
                        dead += 1
                        click.echo(f"{failure}: it is in {letters.name}", err=True)
                    elif failure is not None:
                        end = "it is in the queue again" if is_leased else "it was taken, and is gone"
                        if is_leased:
                            lease.give_back()
                        raise Failure(f"{failure}; {end}; {done:,} were done before")
                    else:
                        if is_leased:
                            with held_back():
                                lease.release()
                        done += 1
                is_idle = True
        except KeyboardInterrupt:
            again = "the one whose command had not ended " + ("is in the queue again" if is_leased else "is gone")
            told = f"{done:,} items done" if is_idle else f"{done:,} items done; {again}"
            raise Stopped(told, is_the_end=demand.is_endless and is_idle and not dead) from None
    demand.end(f"{done:,} items done")
    if dead:
        raise Failure(f"{dead:,} of {done + dead:,} items failed in every try, and are dead letters")


class Runner:
    """Runs one command with one item."""

    def __init__(self, demand: Demand, command: str) -> None:
        self.item = demand.queue.item
        try:
            self.words = shlex.split(command)
        except ValueError as error:
            raise click.UsageError(f"--exec must be a command: {error}: {command!r}") from error
        if not self.words or shutil.which(self.words[0]) is None:
            raise click.UsageError(
                f"--exec must begin with a program: {command!r}; for the words of a shell give sh -c 'COMMANDS' sh {{}}"
            )
        self.takes_stdin = not any("{}" in word or "{file}" in word for word in self.words)
        self.takes_file = any("{file}" in word for word in self.words)

    def tried(self, lease: queueduct.Lease, retries: int | None, delay: float) -> str | None:
        """Runs the command until it succeeds, or has failed so often. Returns why, or None."""
        before = int(lease.deliveries[0]) - 1 if lease.deliveries is not None and retries is not None else 0
        position = int(lease.positions[0])
        failure: str | None = f"the item at position {position} has been delivered {before} times, and was never done"
        for number in range(before, retries or 1):
            if number > before:
                time.sleep(min(delay * 2.0 ** (number - before - 1), LONGEST_DELAY_SECONDS))
            failure = self.run(lease, position)
            if failure is None:
                return None
        return failure

    def run(self, lease: queueduct.Lease, position: int) -> str | None:
        data = bytes_of(lease.items[0], self.item)
        deliveries = "" if lease.deliveries is None else str(int(lease.deliveries[0]))
        with self.file_of(data) as file:
            known = {
                b"{}": data,
                b"{file}": file,
                b"{position}": b"%d" % position,
                b"{deliveries}": deliveries.encode(),
            }
            words = [replaced(os.fsencode(word), known) for word in self.words]
            if any(b"\0" in word for word in words):
                return f"the item at position {position} has a NUL, which no argument can have: use {{file}} or stdin"
            try:
                status = self.status_of(words, data)
            except OSError as error:
                return f"the item at position {position}: {self.words[0]} cannot run: {error.strerror}"
        if status == 0:
            return None
        how = f"signal {-status}" if status < 0 else f"exit code {status}"
        return f"the item at position {position}: {self.words[0]} ended with {how}"

    def status_of(self, words: list[bytes], data: bytes) -> int:
        source = subprocess.PIPE if self.takes_stdin else subprocess.DEVNULL
        with subprocess.Popen(words, stdin=source) as process:
            try:
                process.communicate(data if self.takes_stdin else None)
            except BaseException:
                process.terminate()
                raise
        return process.returncode

    @contextlib.contextmanager
    def file_of(self, data: bytes) -> Iterator[bytes]:
        if not self.takes_file:
            yield b""
            return
        with tempfile.NamedTemporaryFile(prefix="queueduct-item-") as file:
            file.write(data)
            file.flush()
            yield os.fsencode(file.name)


def replaced(word: bytes, known: dict[bytes, bytes]) -> bytes:
    """Replaces from left to right, so that what is in an item is never replaced itself."""
    found = b""
    while word:
        at, mark = min(((word.find(mark), mark) for mark in known if mark in word), default=(-1, b""))
        if at < 0:
            break
        found += word[:at] + known[mark]
        word = word[at + len(mark) :]
    return found + word


def bytes_of(value: Any, item: Any) -> bytes:
    """Returns what a command gets of an item: its bytes, or its line of JSON without the end."""
    if item is bytes:
        return bytes(value)
    if item is object:
        return as_line(value)[:-1]
    return as_line(values_of(np.asarray([value], np.dtype(item)), item)[0])[:-1]


def letter_of(queue: Any, lease: queueduct.Lease, why: str, tries: int) -> Any:
    """Returns a dead letter, as a pool of queueduct.Workers writes it."""
    from queueduct.items.types import ItemType, encode_object
    from queueduct.pool.dead_letters import DeadLetter

    kind = ItemType.of(queue.item)
    value = lease.items[0]
    if queue.item is bytes:
        data = bytes(value)
    else:
        data = encode_object(value) if queue.item is object else np.asarray(value, kind.dtype).tobytes()
    return DeadLetter(int(lease.positions[0]), tries, "CommandFailed", why, "", time.time(), data, kind)
