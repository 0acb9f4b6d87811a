"""A driver that may be killed at any moment: two queries from one queue, one to Parquet and one to a queue.

Of an EventQueue each query has everything; what is in any other kind they share, through spools of their own.

python driver.py QUEUE OUT_QUEUE FOLDER

A query that fails is started again from its checkpoint, as whoever runs a query would do. The driver ends when the
queue was shut down and both queries have done everything in it.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import queueduct
from queueduct.spark import session

OPTIONS = {"maxRowsPerTrigger": 20_000, "partitions": 2}


def main(queue_name: str, out_name: str, folder: Path) -> None:
    spark = session("local[2]", log_level="off")

    def start(sink: str):
        options = {**OPTIONS, "spoolDir": str(folder / f"{sink}-spool")}
        rows = spark.readStream.format("queueduct").options(queue=queue_name, **options).load()
        writer = rows.writeStream.option("checkpointLocation", str(folder / f"{sink}-checkpoint"))
        if sink == "parquet":
            return writer.format("parquet").start(str(folder / "parquet"))
        return writer.format("queueduct").options(queue=out_name, stagingDir=str(folder / "staging")).start()

    queries = {sink: start(sink) for sink in ("parquet", "queue")}
    with queueduct.open(queue_name) as queue:
        while not (queue.stats().is_shut_down and all_is_done(queue, queries, folder)):
            for sink, query in queries.items():
                if not query.isActive:
                    note(folder, f"{sink} starts again after: {str(query.exception())[:2000]}")
                    queries[sink] = start(sink)
            time.sleep(0.1)
    for query in queries.values():
        query.stop()
    note(folder, "done")
    spark.stop()


def all_is_done(queue, queries, folder: Path) -> bool:
    if queue.kind == "events":
        return all(is_done(query, queue.end) for query in queries.values())
    if not is_empty(queue):
        return False
    return all(is_done(query, spool_end(queue, folder / f"{sink}-spool")) for sink, query in queries.items())


def is_empty(queue) -> bool:
    """Nothing is in it, and nothing in the hands of somebody who may give it back."""
    stats = queue.stats()
    return stats.size + stats.leased == 0


def spool_end(queue, directory: Path) -> int:
    with queueduct.EventQueue.open(f"{queue.name}.spool", directory=directory) as spool:
        return spool.end


def is_done(query, end: int) -> bool:
    last = query.lastProgress
    if last is None or query.status["isTriggerActive"] or query.status["isDataAvailable"]:
        return False
    return json.loads(last.sources[0].endOffset)["position"] >= end


def note(folder: Path, line: str) -> None:
    with (folder / "driver.log").open("a") as log:
        log.write(line + "\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
