"""A worker process: lease some jobs, run them, say how they ended, release them.

1. **Lease** a batch, as large as a millisecond's work. Jobs that are to be tried again come first.
2. **Run** each job. Its position is in the worker's line before the item is even unpickled.
3. **Tell.** Failed jobs go into the queue ``retry``, results into ``outcomes``.
4. **Release** the lease. A kill before this step costs another run of the batch, and a kill after it costs nothing.

A failed job ends its batch, and the rest of the batch goes back to the queue: so no later job of the batch can cost the
failed one another run. A job that takes long ends its batch, too: other workers may be idle.

A redelivered job that a dead worker's line names is not run: it goes to ``retry``, as one that has failed once more.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from queueduct.errors import Empty, Full, ShutDown
from queueduct.items.types import RECORD, encode_object
from queueduct.lease import Lease
from queueduct.pool.frames import (
    NUMBER_BYTES,
    START_FAILED,
    Entry,
    FailureFields,
    OutcomeFields,
    decode_item,
    decode_ready,
    pack_exception,
    pack_result,
)
from queueduct.pool.lines import ACTIVE, CURRENT, DONE, JOBS, OWNER, PID, READY, STARTED, STOP, WORDS, job_word
from queueduct.pool.parent import end_with_parent, is_parent_gone
from queueduct.pool.places import Address, Place, open_outcomes

__all__ = ["Setup", "work"]

IDLE_SECONDS = 0.1
BATCH_NS = 1_000_000  # a batch is as large as this much work
BATCH_BYTES = 16 << 20
SLOW_BATCH_NS = 50_000_000  # after this much work the rest of a batch goes to other workers
MESSAGE_BYTES = 1 << 20
START_FAILED_CODE = 71
TEXT_CHARACTERS = 1 << 20  # of a message or a traceback


@dataclass(frozen=True)
class Setup:
    """What a worker is told when it starts."""

    address: Address
    function: Callable[[Any], object]
    initializer: Callable[..., object] | None
    initargs: tuple[Any, ...]
    pool_pid: int
    line: int
    owner: int
    max_tasks: int | None
    max_batch: int
    wants_pairs: bool
    """Results go to a queue, each with its job's position."""
    wants_results: bool
    result_bytes: int
    """The longest result that fits."""


def work(setup: Setup) -> None:
    """The main function of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the pool's: it ends its workers
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with_parent(setup.pool_pid)
    try:
        place = Place(setup.address)
    except Exception:  # the queue of jobs was unlinked, for example
        tell_failure(open_outcomes(setup.address))
        raise
    if place.lines.table[setup.line, OWNER] != setup.owner:
        return  # its pool has given it up
    place.lines.table[setup.line, PID] = os.getpid()
    try:
        if setup.initializer is not None:
            setup.initializer(*setup.initargs)
    except BaseException:
        tell_failure(place.outcomes)
        sys.exit(START_FAILED_CODE)
    place.lines.table[setup.line, ACTIVE] = 1
    try:
        Worker(setup, place).run()
    except Exception:  # not of a job: the pool says it if no worker can go on
        tell_failure(place.outcomes)
        raise


def tell_failure(outcomes: Any) -> None:
    outcomes.put(encode_object([(START_FAILED, 0, 0, False, traceback.format_exc())]))


class Worker:
    """The loop of a worker process."""

    def __init__(self, setup: Setup, place: Place) -> None:
        self._setup = setup
        self._place = place
        self._item_type = place.address.item_type
        self._is_private = place.address.is_private
        self._words = place.lines.words
        self._base = setup.line * WORDS
        self._left = setup.max_tasks
        self._batch = 1
        self._pid = os.getpid()

    def run(self) -> None:
        while not self._is_over():
            if self._place.ready.qsize() and self._take(READY, 0):
                continue
            try:
                is_busy = self._take(JOBS, IDLE_SECONDS)
            except ShutDown:  # jobs that have failed are still to be tried again
                is_busy = self._take(READY, IDLE_SECONDS)
            if not is_busy and is_parent_gone(self._setup.pool_pid):
                return

    def _is_over(self) -> bool:
        return bool(self._words[self._base + STOP]) or (self._left is not None and self._left <= 0)

    def _take(self, source: int, timeout: float) -> bool:
        """Leases a batch and runs it. Returns false if there is none."""
        size = self._batch if self._left is None else min(self._batch, self._left)
        try:
            lease = self._place.sources()[source].lease(size, timeout > 0, timeout)
        except Empty:
            return False
        self._run_batch(source, lease)
        return True

    def _run_batch(self, source: int, lease: Lease) -> None:
        words, base = self._words, self._base
        suspects = self._place.lines.suspects(self._setup.line) if lease.is_redelivered else {}
        failed: list[Entry] = []
        done: list[OutcomeFields] = []
        finished = 0
        held = sum(map(len, lease.items)) if self._item_type.kind != RECORD else 0
        before = now = time.monotonic_ns()
        for position, raw in zip(lease.positions.tolist(), lease.items, strict=True):
            job, tries, payload = self._unpack(source, position, raw)
            word = job_word(source, position)
            if word in suspects:
                failed.append(Entry(job, tries + 1, time.time(), payload, None, suspects[word]))
            else:
                words[base + STARTED] = now
                words[base + CURRENT] = word
                self._run_job(job, source, position, tries, payload, done, failed)
                now = time.monotonic_ns()
            finished += 1
            if failed or now - before > SLOW_BATCH_NS or words[base + STOP]:
                break
        words[base + CURRENT] = 0
        self._tell(done, failed)
        lease.release(finished)
        words[base + DONE] += finished - len(failed)
        if self._left is not None:
            self._left -= finished
        fitting = finished * min(BATCH_NS / max(now - before, 1), BATCH_BYTES / max(held, 1))
        self._batch = 1 if failed else max(1, min(int(fitting), 4 * self._batch, self._setup.max_batch))

    def _unpack(self, source: int, position: int, raw: Any) -> tuple[int, int, bytes]:
        """Returns a job's number, how often it was tried, and its item as bytes."""
        if source == READY:
            return decode_ready(raw)
        if self._is_private:
            return int.from_bytes(raw[:NUMBER_BYTES], "little"), 0, raw[NUMBER_BYTES:]
        return position, 0, raw.tobytes() if self._item_type.kind == RECORD else raw

    def _run_job(
        self,
        job: int,
        source: int,
        position: int,
        tries: int,
        payload: bytes,
        done: list[OutcomeFields],
        failed: list[Entry],
    ) -> None:
        setup = self._setup
        try:
            result = setup.function(decode_item(self._item_type, payload))
            if os.getpid() != self._pid:
                os._exit(0)  # the function has forked, and this is the child: the job and its lease are the parent's
            if setup.wants_results:
                is_pickled, value = pack_result(result, job if setup.wants_pairs else None, setup.result_bytes)
                done.append((job, source, position, is_pickled, value))
            elif source == READY:  # the supervisor keeps account of jobs that have failed before
                done.append((job, source, position, False, None))
        except BaseException as error:  # sys.exit() and the like end a job, not the worker
            if os.getpid() != self._pid:
                os._exit(1)
            failed.append(Entry(job, tries + 1, time.time(), payload, self._failure(error), (0, 0)))

    def _failure(self, error: BaseException) -> FailureFields:
        trace = error.__traceback__
        shown = traceback.TracebackException(type(error), error, trace.tb_next if trace else None, compact=True)
        try:
            message = str(error)
        except BaseException:  # the text of an exception is its class's code, too
            message = "the exception has no text: its __str__ failed"
        text = "".join(shown.format())
        exception = pack_exception(error) if self._is_private else None
        return type(error).__name__, brief(message), brief(text), exception

    def _tell(self, done: list[OutcomeFields], failed: list[Entry]) -> None:
        """Puts what the supervisor must know. Only then the jobs may be released."""
        for entry in failed:
            self._put(self._place.retry, entry.encode())
        start = size = 0
        for i, outcome in enumerate(done):
            value = outcome[4]
            if type(value) is bytes or type(value) is str:
                size += len(value)
                if size > MESSAGE_BYTES:
                    self._put(self._place.outcomes, encode_object(done[start : i + 1]))
                    start, size = i + 1, 0
        if start < len(done):
            self._put(self._place.outcomes, encode_object(done[start:] if start else done))

    def _put(self, queue: Any, data: bytes) -> None:
        """Waits as long as there is no room: for the supervisor, or for a full file system."""
        while True:
            try:
                return queue.put(data, timeout=1)  # type: ignore[no-any-return]
            except Full:
                pass
            except OSError:
                time.sleep(IDLE_SECONDS)
            if is_parent_gone(self._setup.pool_pid):
                os._exit(1)


def brief(text: str) -> str:
    """Returns the text, without its middle if it is very long."""
    half = TEXT_CHARACTERS // 2
    return text if len(text) <= 2 * half else f"{text[:half]}\n[...]\n{text[-half:]}"
