"""A reader's records as Arrow columns, beside the same records as one array: `to_arrow` and `get_many`.

One process reads a log that it has filled, from its beginning, again and again. It keeps what it got until a pass is
over: a program that computes with the records has them, too. Each result is verified: its numbers add up.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.adapter import load
from benchmarks.case import Case, Contender, Goal, Plan
from benchmarks.isolation import Bench, Sample, UnfaithfulError

LOG_RECORDS = 1 << 20
PART = 1 << 16  # records a call that stay in the cache
FIRST_RECORDS, MOST_RECORDS = LOG_RECORDS, 1 << 26
SHAPES = {
    "24": ("3 fields, one of text", [("symbol", "S8"), ("price", "f8"), ("number", "i8")]),
    "64": (
        "11 fields, with text and a time",
        [
            ("symbol", "S8"),
            ("time", "M8[us]"),
            ("price", "f8"),
            ("size", "i4"),
            ("side", "i1"),
            ("flags", "u1"),
            ("venue", "i2"),
            ("bid", "f8"),
            ("ask", "f8"),
            ("order", "i8"),
            ("number", "i8"),
        ],
    ),
    "8": ("one number", "f8"),
    "32": ("28 fields of a byte and a number", [*((f"f{at}", "i1") for at in range(28)), ("number", "u4")]),
    "128": ("6 texts and a number", [*((f"text{at}", "S20") for at in range(6)), ("number", "i8")]),
}
# of 1,000 records what each call costs counts
CALLS = {
    "24": (1000, PART, LOG_RECORDS),
    "64": (PART, LOG_RECORDS),
    "8": (PART, LOG_RECORDS),
    "32": (PART,),
    "128": (PART,),
}


@dataclass(frozen=True)
class Setting:
    """Which records, and which call reads them."""

    shape: str
    call: str
    records: int


def records_of(dtype: Any) -> Any:
    """Return records that differ, with texts of several lengths."""
    records = np.zeros(LOG_RECORDS, dtype)
    numbers = np.arange(LOG_RECORDS)
    if records.dtype.names is None:
        records[:] = numbers
        return records
    for name in records.dtype.names:
        is_text = records.dtype[name].kind == "S"
        records[name] = np.resize([b"IBM", b"ACME", b"LONGNAME"], LOG_RECORDS) if is_text else numbers % 100
    records["number"] = numbers
    return records


def measure_columns(setting: Setting, amount: int, bench: Bench) -> Sample:
    """Read `amount` records, or a few more: whole logs; the value is how many a second."""
    queueduct = load("queueduct")
    load("pyarrow.compute")
    load("queueduct.arrow.streams")
    queue = queueduct.EventQueue.create(bench.tag, item=np.dtype(SHAPES[setting.shape][1]), max_bytes=1 << 28)
    try:
        queue.put_many(records_of(queue.item))
        passes = -(-amount // LOG_RECORDS)
        seconds = sum(read_all(queue, setting) for _ in range(passes))
        return Sample(passes * LOG_RECORDS / seconds, seconds)
    finally:
        queue.close()
        queueduct.unlink(bench.tag)


def read_all(queue: Any, setting: Setting) -> float:
    """Return the seconds of the calls that read the whole log."""
    kept = []
    with queue.subscribe("bench", start="earliest") as reader:
        get = reader.get_many if setting.call == "get_many" else reader.to_arrow
        started = time.perf_counter()
        while reader.lag:
            kept.append(get(setting.records))
        seconds = time.perf_counter() - started
    queue.unsubscribe("bench")
    if setting.call == "get_many":
        total = sum(int((got if got.dtype.names is None else got["number"]).sum()) for got in kept)
    else:
        total = sum(int(load("pyarrow.compute").sum(got.column(got.num_columns - 1)).as_py()) for got in kept)
    if total != LOG_RECORDS * (LOG_RECORDS - 1) // 2:
        raise UnfaithfulError(f"the numbers that were read add up to {total}")
    return seconds


def cases(plan: Plan) -> list[Case]:
    return [
        Case(
            name=f"columns-{shape}-{records}",
            title=f"a log to Arrow columns, records of {shape} bytes ({what}), {records:,} a call",
            unit="items/s",
            contenders=tuple(
                Contender(
                    name=name,
                    measure=measure_columns,
                    setting=Setting(shape, call, records),
                    amount=plan.first(FIRST_RECORDS),
                    most=plan.most(MOST_RECORDS),
                    ours=True,
                    capacity="the whole log is kept",
                    note=note,
                )
                for name, call, note in (
                    ("reader.to_arrow", "to_arrow", "one column a field"),
                    ("reader.get_many", "get_many", "one array of records"),
                )
            ),
            goals=(Goal(0.5, "reader.get_many"),),
        )
        for shape, (what, _) in SHAPES.items()
        for records in CALLS[shape]
    ]
