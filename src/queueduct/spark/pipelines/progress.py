"""What running queries say of themselves, batch by batch."""

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

__all__ = ["Batch", "Progress", "has_ended"]


@dataclass(frozen=True)
class Batch:
    """One micro-batch, when it was done."""

    number: int
    rows: int
    seconds: float
    start: int
    stop: int
    """Positions: from the first, up to and without the second."""
    reader: str
    done_at: float
    """By the clock of the day, in seconds."""


class Progress(StreamingQueryListener):
    """Every batch of every query since it was made, in order. Spark calls from a thread of its own."""

    def __init__(self, spark: SparkSession) -> None:
        self.of_queries: dict[str, list[Batch]] = {}
        self.lock = threading.Lock()
        self.session = spark
        spark.streams.addListener(self)

    def batches(self, query: StreamingQuery) -> list[Batch]:
        """Those of one query that had rows."""
        return self.of_queries.get(str(query.id), [])

    def began(self, query: StreamingQuery) -> int | None:
        """Where a query begins that has not done a batch yet; None before it knows."""
        for progress in query.recentProgress:
            for source in progress.sources:
                fields = fields_of(source.latestOffset)
                if "began" in fields and "reader" in fields:
                    return int(fields["began"]["at"])
        return None

    def settled(self, query: StreamingQuery) -> list[Batch]:
        """The same for a query that has ended, with what its last reports say, whether they have come or not."""
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
        """A report may come twice, and late."""
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


def has_ended(query: StreamingQuery, seconds: float) -> bool:
    """Wait so long for the query's end; raises what has ended it, if that was an error."""
    return bool(query.awaitTermination(seconds))  # type: ignore[arg-type]  # it takes fractions, and says int


def fields_of(offset: str | None) -> dict[str, Any]:
    """Of an offset of our source. Others', and what stands before the first ("None"), have none, nor need be JSON."""
    try:
        fields = json.loads(offset or "null")
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}
