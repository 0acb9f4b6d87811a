"""DuckDB, polars and pyarrow read the archive, and Spark in tests/spark. Spark's own archives are replayed."""

import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import queueduct
from queueduct.recording import Recording, create_for, record, replay
from tests.recording.ticks import TICK, ticks


@pytest.fixture
def recorded(tmp_path):
    """An archive of 300 ticks, while a recorder is killed in the middle of the next file."""
    with queueduct.EventQueue.create("q", item=TICK) as q:
        q.put_many(ticks(300))
        record(q, tmp_path / "rec", available_now=True, rows_per_file=100)
    (tmp_path / "rec" / "_recording.tmp").write_bytes(b"PAR1 and no more")
    return tmp_path / "rec"


def test_duckdb_reads_it(recorded):
    duckdb = pytest.importorskip("duckdb", reason="duckdb reads the archive in the tests: make test installs it")
    query = f"select count(*), sum(n), max(position), min(recorded_at) > '2026-01-01' from '{recorded}/*.parquet'"
    assert duckdb.sql(query).fetchall() == [(300, sum(range(300)), 299, True)]


def test_polars_reads_it(recorded):
    polars = pytest.importorskip("polars", reason="polars reads the archive in the tests: make test installs it")
    frame = polars.read_parquet(f"{recorded}/*.parquet")
    assert frame["position"].to_list() == list(range(300))
    assert frame["px"].to_list() == (np.arange(300) / 4).tolist()
    assert frame["ts"].to_list()[1].isoformat() == "2026-01-05T09:30:00.001000"


def test_pyarrow_reads_it_as_a_data_set(recorded):
    found = pyarrow.dataset.dataset(recorded).to_table(columns=["n", "position"])
    assert found["n"].to_pylist() == found["position"].to_pylist() == list(range(300))


def test_an_unfinished_file_does_not_count(recorded):
    with create_for(Recording(recorded), "again", "events") as again:
        assert replay(recorded, again, speed=math.inf).rows == 300


def spark_archive(folder, parts, *, counted):
    """As Spark's file sink leaves it: the files of each batch, and those of tasks that failed, which no log has."""
    (folder / "_spark_metadata").mkdir(parents=True)
    for batch, names in enumerate(counted):
        lines = [json.dumps({"path": f"file://{folder}/{name}", "action": "add"}) for name in names]
        kind = ".compact" if batch == len(counted) - 2 else ""
        if kind:
            before = [name for earlier in counted[:batch] for name in earlier]
            lines = [json.dumps({"path": f"file://{folder}/{name}", "action": "add"}) for name in before] + lines
        (folder / "_spark_metadata" / f"{batch}{kind}").write_text("\n".join(["v1", *lines]))
    for name, table in parts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, folder / name)


def spark_table(numbers, **more):
    made = ticks(1000)[list(numbers)]
    columns = {"px": made["px"], "n": made["n"], "position": made["n"], **more}
    return pa.table({**columns, "ts": pa.array(made["ts"]).cast(pa.timestamp("us", "UTC"))})


def test_of_sparks_files_those_count_that_its_log_has(tmp_path):
    folder = tmp_path / "lake"
    parts = {
        "sym=ACME/part-0.parquet": spark_table(range(0, 300, 3)),
        "sym=IBM/part-1.parquet": spark_table(range(1, 300, 3)),
        "sym=LONG%20NAME/part-2.parquet": spark_table(range(2, 300, 3)),
        "sym=ACME/part-9.parquet": spark_table(range(100)),
    }
    names = list(parts)
    spark_archive(folder, parts, counted=[names[:1], names[1:2], [names[2].replace("%", "%25")]])
    item = np.dtype([("sym", "S9"), ("px", "f8"), ("ts", "M8[us]"), ("n", "i8")])
    with create_for(Recording(folder), "again", "events", item=item) as again:
        assert replay(folder, again, speed=math.inf).rows == 300
        got = again.read(0, 300)
    assert got["n"].tolist() == list(range(300))
    assert set(got["sym"].tolist()) == {b"ACME", b"IBM", b"LONG NAME"}
    assert (got["ts"] == ticks(300)["ts"]).all()


def test_a_file_that_spark_has_written_and_that_is_gone_is_told(tmp_path):
    folder = tmp_path / "lake"
    spark_archive(folder, {"part-0.parquet": spark_table(range(3))}, counted=[["part-0.parquet"], ["part-1.parquet"]])
    with pytest.raises(FileNotFoundError, match=r"part-1\.parquet"):
        Recording(folder)
