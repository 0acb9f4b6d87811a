"""Recording and replaying, beside what they cannot be faster than: pyarrow's writer, and `put_many`.

The recorder reads a log of a million ticks, makes columns of it, writes and syncs them; pyarrow gets the same columns,
made before, and writes the same files of the same row groups with the same options, without a sync: the files are in
memory, where a sync takes no time. The replay reads such files, makes records of them and puts them; `put_many` puts
the same records, made before, into a new log as the replay does. A paced replay puts ticks a tenth of a millisecond
apart; its value is by how many milliseconds 99 of 100 are late at most.
"""

import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.adapter import load
from benchmarks.case import Case, Contender, Goal, Plan
from benchmarks.isolation import Bench, Sample, UnfaithfulError

LOG_RECORDS = 1 << 20
FILE_ROWS = 1_000_000
BATCH = 1 << 16
PACED_RECORDS = 20_000
TICK = np.dtype([("symbol", "S8"), ("price", "f8"), ("time", "M8[us]"), ("number", "i8")])


def ticks(count: int) -> Any:
    """Return ticks with prices that walk and times that rise."""
    random = np.random.default_rng(1)
    made = np.zeros(count, TICK)
    made["symbol"] = np.resize([b"IBM", b"ACME", b"LONGNAME"], count)
    made["price"] = np.round(100 + np.cumsum(random.normal(0, 0.01, count)), 2)
    made["time"] = np.datetime64("2026-01-05T09:30", "us") + np.cumsum(random.integers(0, 2000, count))
    made["number"] = np.arange(count)
    return made


def filled(name: str) -> Any:
    queue = load("queueduct").EventQueue.create(name, item=TICK, max_bytes=1 << 28, replace=True)
    put_all(queue)
    return queue


def put_all(queue: Any) -> None:
    made = ticks(LOG_RECORDS)
    for at in range(0, LOG_RECORDS, BATCH):
        queue.put_many(made[at : at + BATCH])


def check(directory: Path) -> None:
    """Raise unless the files have each number once, in order."""
    parquet, values_of = load("pyarrow.parquet"), load("queueduct.arrow.records").values_of
    files = [parquet.ParquetFile(path).read(["number"]) for path in sorted(directory.glob("*.parquet"))]
    numbers = np.concatenate([values_of(chunk) for file in files for chunk in file["number"].chunks])
    if not np.array_equal(numbers, np.arange(LOG_RECORDS)):
        raise UnfaithfulError(f"{len(numbers)} numbers of {LOG_RECORDS} are in the files, or not in their order")


def measure_recording(setting: str, amount: int, bench: Bench) -> Sample:
    """Write `amount` logs; the value is how many records a second."""
    recording = load("queueduct.recording")
    queue = filled(bench.tag)
    directory = bench.directory / f"{bench.tag}-files"
    seconds = 0.0
    try:
        files = columns_of(queue) if setting == "pyarrow" else []
        for _ in range(amount):
            started = time.perf_counter()
            if setting == "record":
                recording.record(queue, directory, available_now=True, reader="bench", rows_per_file=FILE_ROWS)
            else:
                write(files, directory)
            seconds += time.perf_counter() - started
            check(directory)
            shutil.rmtree(directory)
            if setting == "record":
                queue.unsubscribe("bench")
    finally:
        queue.close()
        load("queueduct").unlink(bench.tag)
    return Sample(amount * LOG_RECORDS / seconds, seconds)


def shape_of(item: Any) -> Any:
    columns = load("queueduct.recording.columns")
    return columns.Shape(item, strings="string", position_column=columns.POSITION, recorded_column=columns.RECORDED)


def columns_of(queue: Any) -> list[list[Any]]:
    """Return the columns of each file that the recorder writes, by row groups."""
    recorder, columns = load("queueduct.recording.recorder"), load("queueduct.recording.columns")
    shape = shape_of(queue.item)

    def group(first: int, last: int) -> Any:
        return shape.batch([columns.Part.of(queue.read(first, last), np.arange(first, last))])

    return [
        [group(first, min(first + recorder.GROUP_ROWS, end)) for first in range(start, end, recorder.GROUP_ROWS)]
        for start, end in ((start, min(start + FILE_ROWS, LOG_RECORDS)) for start in range(0, LOG_RECORDS, FILE_ROWS))
    ]


def write(files: list[list[Any]], directory: Path) -> None:
    """Write them with the options of the recorder."""
    pa, parquet = load("pyarrow"), load("pyarrow.parquet")
    shape = shape_of(TICK)
    directory.mkdir()
    for number, batches in enumerate(files):
        with parquet.ParquetWriter(
            directory / f"{number:04d}.parquet",
            shape.schema,
            compression="snappy",
            use_dictionary=shape.dictionary_columns(),
            column_encoding=shape.difference_columns(),
        ) as writer:
            for batch in batches:
                writer.write_table(pa.Table.from_batches([batch]), row_group_size=batch.num_rows)


def measure_replay(setting: str, amount: int, bench: Bench) -> Sample:
    """Fill `amount` new logs; the value is how many records a second."""
    queueduct, recording = load("queueduct"), load("queueduct.recording")
    directory = bench.directory / f"{bench.tag}-files"
    seconds = 0.0
    with filled(bench.tag) as queue:
        recording.record(queue, directory, available_now=True)
    made = ticks(LOG_RECORDS)
    try:
        for _ in range(amount):
            with queueduct.EventQueue.create(bench.tag, item=TICK, max_bytes=1 << 28, replace=True) as queue:
                started = time.perf_counter()
                if setting == "replay":
                    recording.replay(directory, queue, speed=float("inf"))
                else:
                    for at in range(0, LOG_RECORDS, BATCH):
                        queue.put_many(made[at : at + BATCH])
                seconds += time.perf_counter() - started
                if (
                    queue.end != LOG_RECORDS
                    or not (queue.read(LOG_RECORDS - BATCH, LOG_RECORDS) == made[-BATCH:]).all()
                ):
                    raise UnfaithfulError("the log has other records than were recorded")
    finally:
        queueduct.unlink(bench.tag)
        shutil.rmtree(directory)
    return Sample(amount * LOG_RECORDS / seconds, seconds)


def measure_pace(setting: str, amount: int, bench: Bench) -> Sample:
    """Replay at the speed of the times; the value is the 99th percentile of the delays, in milliseconds."""
    queueduct, recording = load("queueduct"), load("queueduct.recording")
    directory = bench.directory / f"{bench.tag}-files"
    made = ticks(amount)
    made["time"] = made["time"][0] + 100 * np.arange(amount)
    with queueduct.EventQueue.create(bench.tag, item=TICK) as queue:
        queue.put_many(made)
        recording.record(queue, directory, available_now=True)
        done = recording.replay(directory, queue, time_field="time")
        if queue.end != 2 * amount:
            raise UnfaithfulError(f"{queue.end - amount} of {amount} were replayed")
    queueduct.unlink(bench.tag)
    shutil.rmtree(directory)
    return Sample(done.late_p99 * 1e3, done.seconds, {"max": done.late_max * 1e3})


def cases(plan: Plan) -> list[Case]:
    kept = "the whole log is kept"
    return [
        Case(
            name="recording-write",
            title="a log of ticks of 32 bytes to Parquet files, each position once",
            unit="items/s",
            contenders=(
                Contender("queueduct record", measure_recording, "record", 1, ours=True, capacity=kept),
                Contender(
                    "pyarrow.parquet", measure_recording, "pyarrow", 1, reference=True, note="columns that are there"
                ),
            ),
            goals=(Goal(0.8, "pyarrow.parquet"),),
        ),
        Case(
            name="recording-replay",
            title="such files into a new log, flat out",
            unit="items/s",
            contenders=(
                Contender("queueduct replay", measure_replay, "replay", 1, ours=True, capacity=kept),
                Contender("put_many", measure_replay, "put_many", 1, ours=True, note="records that are there"),
            ),
            goals=(Goal(0.5, "put_many"),),
        ),
        Case(
            name="recording-pace",
            title="10,000 ticks a second, replayed at the speed of their times: how late 99 of 100 are at most",
            unit="ms",
            contenders=(Contender("queueduct replay", measure_pace, "pace", PACED_RECORDS, ours=True),),
            goals=(Goal(5.0, "", "at most"),),
            higher_is_better=False,
        ),
    ]
