"""The measurements: each returns rows a second, or seconds, of one run."""

from __future__ import annotations

import socket
import statistics
import threading
import time

import queueduct
from benchmarks.spark.place import ROW, Place, seconds_of, some_rows, stream_to_noop

SOCKET_ROWS = 100_000
FLOOR_BATCHES = 20


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
