"""A producer that may be killed at any moment, and repeats on its next start what it cannot know to be in.

python producer.py QUEUE NUMBER ROWS

It puts its rows with put_once, under its own name: killed in mid-put and started again, it puts each once.
"""

from __future__ import annotations

import sys

from rows import numbered

import penstock

BATCH = 500


def main(queue_name: str, number: int, rows: int) -> None:
    with penstock.open(queue_name) as queue:
        for sequence in range(rows // BATCH):
            start = number * rows + sequence * BATCH
            queue.put_once(numbered(start, start + BATCH), f"producer-{number}", sequence)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
