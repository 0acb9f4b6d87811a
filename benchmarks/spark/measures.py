"""The measurements: each returns rows a second, or seconds, of one run."""

from __future__ import annotations

import shutil
import socket
import statistics
import threading
import time

import numpy as np
from pyspark.sql import DataFrame, functions
from pyspark.sql.streaming.query import StreamingQuery

import queueduct
from benchmarks.spark.place import ROW, Place, rate_of, seconds_of, some_rows, stream_to_noop
from queueduct.spark.pipelines import archive

SOCKET_ROWS = 100_000
FLOOR_BATCHES = 20
LATENCY_ROWS = 100
LATENCY_WARM_UP = 40  # rows that are not counted: Java compiles the batches of the first seconds
LATENCY_SECONDS = 0.05  # between rows
RATE_SECONDS = 5


def ours_stream(place: Place) -> float:
    rows = place.spark.readStream.format("queueduct").option("queue", "bench-rows").load()
    try:
        return stream_to_noop(place, rows)
    finally:
        for reader in place.queue.readers():
            free(place.queue, str(reader.name))


def free(queue: queueduct.EventQueue, reader: str) -> None:
    """Forget a query's reader as soon as its process has let go of it."""
    for _ in range(200):
        try:
            queue.unsubscribe(reader)
            return
        except (queueduct.QueueductError, ValueError):
            time.sleep(0.05)


def parquet_stream(place: Place) -> float:
    schema = place.spark.read.parquet(place.parquet).schema
    return stream_to_noop(place, place.spark.readStream.schema(schema).parquet(place.parquet))


def ours_archive(place: Place) -> float:
    """`queueduct archive` of all rows."""
    folder = place.new_folder()
    try:
        return rate_of(place, archive(place.spark, "bench-rows", folder, available_now=True))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        for reader in place.queue.readers():
            free(place.queue, str(reader.name))


def parquet_to_parquet(place: Place) -> float:
    """Spark's own stream of the same rows from its Parquet files, into the same sink."""
    schema = place.spark.read.parquet(place.parquet).schema
    rows = place.spark.readStream.schema(schema).parquet(place.parquet)
    folder = place.new_folder()
    writer = rows.writeStream.format("parquet").option("checkpointLocation", f"{folder}/_checkpoint")
    try:
        return rate_of(place, writer.trigger(availableNow=True).start(folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def ours_latency(place: Place) -> float:
    """Median seconds from a put to the row in the hands of a foreachBatch function."""
    name = f"bench-latency-{next(place.names)}"
    with queueduct.EventQueue.create(name, item=ROW) as queue:
        taken = Taken()
        rows = place.spark.readStream.format("queueduct").option("queue", name).load()
        query = taken.started(place, rows, "at")
        try:
            for number in range(LATENCY_WARM_UP + LATENCY_ROWS):
                row = some_rows(number, number + 1)
                row["at"] = np.datetime64(time.time_ns() // 1000, "us")
                queue.put_many(row)
                time.sleep(LATENCY_SECONDS)
            query.processAllAvailable()
        finally:
            query.stop()
            queue.unlink()
    latencies = taken.latencies()
    if len(latencies) != LATENCY_WARM_UP + LATENCY_ROWS:
        raise AssertionError(f"{LATENCY_WARM_UP + LATENCY_ROWS} rows were put, {len(latencies)} came")
    return statistics.median(latencies[LATENCY_WARM_UP:])


def rate_latency(place: Place) -> float:
    """The same of Spark's rate source, which gives each row the time at which it is due."""
    taken = Taken()
    rows = place.spark.readStream.format("rate").option("rowsPerSecond", round(1 / LATENCY_SECONDS)).load()
    query = taken.started(place, rows, "timestamp")
    try:
        time.sleep(LATENCY_WARM_UP * LATENCY_SECONDS + RATE_SECONDS)
    finally:
        query.stop()
    return statistics.median(taken.latencies()[LATENCY_WARM_UP:])


class Taken:
    """The times at which rows were put, or due, and at which a foreachBatch function had read them."""

    def __init__(self) -> None:
        self.pairs: list[tuple[float, float]] = []

    def started(self, place: Place, rows: DataFrame, column: str) -> StreamingQuery:
        moment = functions.unix_micros(column).alias("moment")

        def take(batch: DataFrame, number: int) -> None:
            found = batch.select(moment).collect()
            now = time.time()
            self.pairs += [(row["moment"] / 1e6, now) for row in found]

        writer = rows.writeStream.option("checkpointLocation", place.new_folder())
        return writer.foreachBatch(take).start()

    def latencies(self) -> list[float]:
        return [had - put for put, had in sorted(self.pairs)]


def ours_batch(place: Place) -> float:
    rows = place.spark.read.format("queueduct").option("queue", "bench-rows").load()
    return place.rows / seconds_of(lambda: rows.write.format("noop").mode("overwrite").save())


def parquet_batch(place: Place) -> float:
    rows = place.spark.read.parquet(place.parquet)
    return place.rows / seconds_of(lambda: rows.write.format("noop").mode("overwrite").save())


def socket_stream(place: Place) -> float:
    """Lines of the same numbers, read by Spark's socket source from a thread of ours."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            connection.sendall(b"".join(b"%d,%f,%d\n" % (n, n / 4, n) for n in range(SOCKET_ROWS)))
            done.wait()

    done = threading.Event()
    thread = threading.Thread(target=serve)
    thread.start()
    rows = place.spark.readStream.format("socket").option("host", "127.0.0.1")
    rows = rows.option("port", server.getsockname()[1]).load()
    began = time.perf_counter()
    query = rows.writeStream.format("noop").option("checkpointLocation", place.new_folder()).start()
    try:
        while sum(progress.numInputRows for progress in query.recentProgress) < SOCKET_ROWS:
            time.sleep(0.02)
        return SOCKET_ROWS / (time.perf_counter() - began)
    finally:
        done.set()
        query.stop()
        thread.join()
        server.close()


def ours_floor(place: Place) -> float:
    """Seconds of a micro-batch of one row."""
    name = f"bench-floor-{next(place.names)}"
    with queueduct.EventQueue.create(name, item=ROW) as queue:
        rows = place.spark.readStream.format("queueduct").option("queue", name).load()
        query = rows.writeStream.format("noop").option("checkpointLocation", place.new_folder()).start()
        try:
            for number in range(FLOOR_BATCHES):
                queue.put_many(some_rows(number, number + 1))
                query.processAllAvailable()
            return floor_of(query)
        finally:
            query.stop()
            queue.unlink()


def rate_floor(place: Place) -> float:
    rows = place.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    query = rows.writeStream.format("noop").option("checkpointLocation", place.new_folder()).start()
    try:
        while len(query.recentProgress) < FLOOR_BATCHES:
            time.sleep(0.05)
        return floor_of(query)
    finally:
        query.stop()


def floor_of(query) -> float:
    """Of the later half: the first batches pay for the start."""
    times = [p.durationMs["triggerExecution"] / 1e3 for p in query.recentProgress if p.numInputRows]
    return statistics.median(times[len(times) // 2 :])


def ours_sink(place: Place) -> float:
    name = f"bench-sink-{next(place.names)}"
    size = place.rows * ROW.itemsize * 2 + (64 << 20)
    with queueduct.EventQueue.create(name, item=ROW, max_bytes=size) as queue:
        try:
            writer = place.made_rows().write.format("queueduct").option("queue", name).mode("append")
            seconds = seconds_of(writer.save)
            if queue.end != place.rows:
                raise AssertionError(f"{place.rows:,} rows were written, {queue.end:,} are in the queue")
            return place.rows / seconds
        finally:
            queue.unlink()


def parquet_sink(place: Place) -> float:
    folder = place.new_folder()
    return place.rows / seconds_of(lambda: place.made_rows().write.parquet(folder))
