"""The progress of running queries, batch by batch."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
    StreamingQueryProgress,
)
from pyspark.sql.streaming.query import StreamingQuery

from queueduct.monitoring.pipelines import PipelineFile

__all__ = ["Batch", "Progress", "Told", "has_ended"]

TELL_SECONDS = 2.0


@dataclass(frozen=True)
class Batch:
    """One micro-batch, when it was done."""

    number: int
    rows: int
    seconds: float
    start: int
    stop: int
    """The positions of the batch: from the first, up to and without the second."""
    reader: str
    done_at: float
    """In seconds of the wall clock."""


class Progress(StreamingQueryListener):
    """Records every batch of every query, in order. Spark calls it from its own thread."""

    def __init__(self, spark: SparkSession) -> None:
        self.of_queries: dict[str, list[Batch]] = {}
        self.lock = threading.Lock()
        self.session = spark
        spark.streams.addListener(self)

    def batches(self, query: StreamingQuery) -> list[Batch]:
        """Returns the batches of one query that had rows."""
        return self.of_queries.get(str(query.id), [])

    def began(self, query: StreamingQuery) -> int | None:
        """Returns where a query begins that has not done a batch yet; None before that is known."""
        for progress in query.recentProgress:
            for source in progress.sources:
                fields = fields_of(source.latestOffset)
                if "began" in fields and "reader" in fields:
                    return int(fields["began"]["at"])
        return None

    def settled(self, query: StreamingQuery) -> list[Batch]:
        """Returns the batches of a query that has ended, with those whose reports have not come."""
        for progress in query.recentProgress:
            self.take(progress)
        return self.batches(query)

    def close(self) -> None:
        self.session.streams.removeListener(self)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        self.take(event.progress)

    def take(self, progress: StreamingQueryProgress) -> None:
        """Adds a batch. A report may come twice, and late."""
        batches = self.of_queries.setdefault(str(progress.id), [])
        if not progress.numInputRows or not progress.sources:
            return
        source = progress.sources[0]
        stop = fields_of(source.endOffset)
        if "position" not in stop or "reader" not in stop:
            return  # a query of another source, in the same session
        batch = Batch(
            number=progress.batchId,
            rows=progress.numInputRows,
            seconds=progress.durationMs.get("triggerExecution", 0) / 1e3,
            start=int(fields_of(source.startOffset).get("position", 0)),
            stop=int(stop["position"]),
            reader=str(stop["reader"]),
            done_at=time.time(),
        )
        with self.lock:
            if not batches or batches[-1].number < batch.number:
                batches.append(batch)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        pass


class Told:
    """Tells those who watch the queue how a query is doing: with each batch, and every few seconds."""

    def __init__(self, file: PipelineFile) -> None:
        self.file = file
        self.told: tuple[int | None, float] = (None, 0.0)

    def is_due(self, batches: list[Batch]) -> bool:
        """Asked several times a second."""
        last = batches[-1].number if batches else None
        number, told_at = self.told
        if last == number and time.monotonic() - told_at < TELL_SECONDS:
            return False
        self.told = (last, time.monotonic())
        return True

    def write(self, batches: list[Batch], done: int | None, lag: int) -> None:
        last = batches[-1] if batches else None
        self.file.tell(
            rows=sum(batch.rows for batch in batches),
            batches=len(batches),
            rows_per_second=last.rows / max(last.seconds, 1e-3) if last else 0.0,
            batch_seconds=last.seconds if last else 0.0,
            position=done or 0,
            lag=lag,
            reader=last.reader if last else "",
        )


def has_ended(query: StreamingQuery, seconds: float) -> bool:
    """Waits that long for the query's end. Raises the error that has ended it."""
    return bool(query.awaitTermination(seconds))  # type: ignore[arg-type]  # it takes fractions, and says int


def fields_of(offset: str | None) -> dict[str, Any]:
    """Returns the position of an offset of our source. Others have none, need not be JSON, and may be "None"."""
    try:
        fields = json.loads(offset or "null")
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}
