"""A producer that may be killed at any moment, and goes on at its next start.

python producer.py QUEUE NUMBER ROWS [FOLDER]

It puts its rows with put_once, under its own name: killed in mid-put and started again, it puts each once. Into a queue
that has no put_once it puts each at most once: it writes down which rows come next before it puts them, and leaves out
those that it had begun when it was killed. It overwrites when it has waited a while for room: so the queue loses rows
as long as nobody reads, and has some left for who does.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import queueduct
from tests.spark.rows import numbered

BATCH = 500
PATIENCE_SECONDS = 1.0


def main(queue_name: str, number: int, rows: int, folder: Path) -> None:
    with queueduct.open(queue_name) as queue:
        if hasattr(queue, "put_once"):
            for sequence in range(rows // BATCH):
                start = number * rows + sequence * BATCH
                queue.put_once(numbered(start, start + BATCH), f"producer-{number}", sequence)
        else:
            put_at_most_once(queue, number * rows, rows, folder / f"producer-{number}")


def put_at_most_once(queue, first: int, rows: int, note: Path) -> None:
    begun = int(note.read_text()) if note.exists() else 0
    for sequence in range(begun, rows // BATCH):
        temporary = note.with_suffix(".new")
        temporary.write_text(str(sequence + 1))
        temporary.replace(note)
        start = first + sequence * BATCH
        batch = numbered(start, start + BATCH)
        done = 0
        with contextlib.suppress(queueduct.Full):
            done = queue.put_many(batch, timeout=PATIENCE_SECONDS, overwrite=False)
        queue.put_many(batch[done:])


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(*sys.argv[4:]))
