"""What Spark queries tell of their progress: a small file for each, beside the queues.

Shape      ``<directory of the queue>/.progress/<key>.json``. A hidden directory is no queue: neither ``queues()`` nor a
           queue's name leads into it. The key is a hash of the query's identity (queue, target, checkpoint), so that a
           query that is started again takes its predecessor's file over.
Roles      the process that runs the query writes its own file; any process reads all.
Rules      a file is written beside its name and renamed, so a reader sees a whole one. It names the process that wrote
           it (pid and start) and when: a query that is silent for longer than ``SILENCE_SECONDS``, and whose process
           cannot be seen, has ended without a word. Files of queries that ended more than a day ago are removed by the
           next query that starts.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

from queueduct.segments.boot import PROC, boot_id, process_start_ticks, start_ticks_of

__all__ = ["FOLDER", "PipelineFile", "PipelineSeen", "read_pipelines"]

FOLDER = ".progress"
VERSION = 1
SILENCE_SECONDS = 10.0
KEPT_SECONDS = 86400.0
LENGTH_LIMIT = 65536


class PipelineSeen(NamedTuple):
    """A Spark query that reads a queue, as its process told of it last."""

    queue: str
    title: str
    """What it does: ``archive ticks to lake/ticks``."""
    target: str
    """A directory, or a queue."""
    target_queue: str | None
    """The queue that it puts to, if it puts to one in the same directory."""
    state: str
    """``running``, ``ended``, ``failed``, or ``gone``: its process ended without a word."""
    ended: str | None
    """Why it ended."""
    pid: int
    started: float
    """Seconds since the epoch, as the next one."""
    written: float
    rows: int
    batches: int
    rows_per_second: float
    """Over the last batch."""
    batch_seconds: float
    position: int
    """Everything before it is done."""
    lag: int
    """Items that are not done."""
    reader: str


class PipelineFile:
    """The file of one running query. Telling is a courtesy: a full disk or a read-only directory stops no query."""

    def __init__(
        self, directory: Path, queue: str, title: str, target: str, target_queue: str | None, checkpoint: object
    ) -> None:
        identity = "\0".join((queue, target, str(checkpoint)))
        self._folder = directory / FOLDER
        self._path = self._folder / f"{hashlib.sha256(identity.encode(errors='replace')).hexdigest()[:24]}.json"
        self._fields: dict[str, Any] = {
            "version": VERSION,
            "queue": queue,
            "title": title,
            "target": target,
            "target_queue": target_queue,
            "state": "running",
            "ended": None,
            "pid": os.getpid(),
            "start_ticks": process_start_ticks(),
            "boot": boot_id().hex(),
            "started": time.time(),
            "rows": 0,
            "batches": 0,
            "rows_per_second": 0.0,
            "batch_seconds": 0.0,
            "position": 0,
            "lag": 0,
            "reader": "",
        }
        with contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, exist_ok=True)
            remove_old(self._folder)

    def tell(self, **fields: Any) -> None:
        """Writes the file anew, with these fields changed."""
        self._fields.update(fields, written=time.time())
        beside = self._path.with_suffix(f".{os.getpid()}.new")
        try:
            beside.write_text(json.dumps(self._fields))
            os.replace(beside, self._path)
        except OSError:
            with contextlib.suppress(OSError):
                beside.unlink()

    def end(self, reason: str, *, is_failure: bool = False) -> None:
        """Writes that the query has ended, and why."""
        self.tell(state="failed" if is_failure else "ended", ended=reason)


def read_pipelines(directory: Path) -> list[PipelineSeen]:
    """Returns all queries that have told of themselves in this directory of queues, by their start."""
    try:
        paths = sorted((directory / FOLDER).glob("*.json"))
    except OSError:
        return []
    found = [seen for path in paths if (seen := read_pipeline(path)) is not None]
    return sorted(found, key=lambda each: each.started)


def read_pipeline(path: Path) -> PipelineSeen | None:
    """Returns what a file says, or None if it is none of ours, or of a later version."""
    try:
        with path.open("rb") as file:
            fields = json.loads(file.read(LENGTH_LIMIT))
        if fields["version"] != VERSION:
            return None
        if fields["state"] == "running" and is_gone(fields):
            fields["state"] = "gone"
        return PipelineSeen(**{name: PLAIN[name](fields[name]) for name in PipelineSeen._fields})
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def is_gone(fields: dict[str, Any]) -> bool:
    """Returns true if the query was silent for long, and its process is not to be seen, or is another one.

    A fresh file needs no process: its writer may be in another container, where pids are others.
    """
    if abs(time.time() - float(fields["written"])) < SILENCE_SECONDS:
        return False
    if fields["boot"] != boot_id().hex():
        return True
    return start_ticks_of(PROC / str(int(fields["pid"]))) != int(fields["start_ticks"])


def remove_old(folder: Path) -> None:
    """Removes files that nobody has written for a day. A query that runs writes every few seconds."""
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > KEPT_SECONDS:
                path.unlink()


def text_or_none(value: Any) -> str | None:
    return None if value is None else str(value)


PLAIN: dict[str, Any] = {
    **dict.fromkeys(("queue", "title", "target", "state", "reader"), str),
    **dict.fromkeys(("target_queue", "ended"), text_or_none),
    **dict.fromkeys(("pid", "rows", "batches", "position", "lag"), int),
    **dict.fromkeys(("started", "written", "rows_per_second", "batch_seconds"), float),
}
