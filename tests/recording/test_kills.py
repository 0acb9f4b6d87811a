"""A recorder is killed at random moments, and started again with the same directory.

Allowed, and nothing else: in the end the files have each position once, and every item that was put; of a queue that
overwrites each position at most once.
"""

from __future__ import annotations

import random
import time

import numpy as np
import pyarrow.parquet as pq
import pytest

import queueduct
from queueduct.recording import record
from tests.recording.ticks import MAKERS, names_of, table_of, ticks

OPTIONS = {"rows_per_file": 100, "seconds_per_file": 0.05}


def produce_until(flag):
    with queueduct.open("q") as q:
        first = 0
        while not flag.exists():
            first += q.put_many(ticks(20, first))
        q.shutdown()


def record_to_the_end(folder):
    with queueduct.open("q") as q:
        record(q, folder, **OPTIONS)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", MAKERS)
def test_each_position_is_recorded_once_though_the_recorder_is_killed(kind, tmp_path, children, is_long, capsys):
    kills = 200 if is_long else 25
    rng = random.Random(kind)
    folder, flag = tmp_path / "rec", tmp_path / "enough"
    with MAKERS[kind]() as q:
        if kind == "events":
            record(q, folder, available_now=True)  # its reader makes the producer wait
        producer = children.fork(lambda: produce_until(flag))
        for _ in range(kills):
            recorder = children.fork(lambda: record_to_the_end(folder))
            time.sleep(rng.uniform(0, 0.1))
            children.kill(recorder)
            check_whole(folder)
        flag.touch()
        recorder = children.fork(lambda: record_to_the_end(folder))
        assert (children.wait(producer), children.wait(recorder)) == (0, 0)
        found, put = table_of(folder), q.stats().items_put
    with capsys.disabled():
        print(f"\n  {kind}: {kills} kills, {found.num_rows:,} of {put:,} items in {len(names_of(folder))} files")
    positions, numbers = found["position"].to_numpy(), found["n"].to_numpy()
    assert len(np.unique(positions)) == len(positions)
    assert len(np.unique(numbers)) == len(numbers)
    assert found.num_rows > 100, "the recorder has recorded between kills"
    if kind != "overwriting":
        assert (numbers == np.arange(put)).all()
    assert (found["px"].to_numpy() == numbers / 4).all()


def check_whole(folder):
    """What has its name is complete, and at most one file has not."""
    names = names_of(folder) if folder.is_dir() else []
    for name in [name for name in names if name.endswith(".parquet")][-2:]:
        first, last = map(int, name.removesuffix(".parquet").split("-"))
        with pq.ParquetFile(folder / name) as file:
            positions = file.read(["position"], use_threads=False)["position"].to_numpy()
        assert (positions.min(), positions.max()) == (first, last)
    assert [name for name in names if not name.endswith(".parquet")] in ([], ["_recording.tmp"])
