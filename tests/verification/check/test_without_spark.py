"""A history that fits in memory needs numpy and pyarrow only, and whatever else is missing is named."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from queueduct.verification.check import check
from tests.verification.check.histories import history_of
from tests.verification.check.writing import write

COMMAND = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
sys.argv[1:] = {arguments}
from queueduct.cli import main
try:
    main()
finally:
    print("imported", *sorted({{name.partition(".")[0] for name in sys.modules}} & {{"pyspark", "pandas", "py4j"}}))
"""
SPARK = {"pyspark", "pandas", "py4j"}


def run(*arguments, missing=frozenset()):
    code = COMMAND.format(missing=sorted(missing), arguments=[str(each) for each in arguments])
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)


@pytest.fixture
def history(tmp_path):
    return write(tmp_path / "history", history_of(), "bounded", 2)


def test_a_check_in_memory_imports_neither_spark_nor_pandas(history, tmp_path):
    told = run("check", history, "--report", tmp_path / "report.html")
    assert told.returncode == 0, told.stderr
    assert told.stdout.splitlines()[-1] == "imported"
    assert "passed" in (tmp_path / "report.html").read_text()


def test_a_check_in_memory_works_where_they_are_missing(history):
    told = run("check", history, missing=SPARK)
    assert told.returncode == 0, told.stderr
    assert "passed:" in told.stdout


def test_a_stress_run_and_its_history_work_where_they_are_missing(tmp_path):
    arguments = ("stress", "bounded", "--threads", "--ops", "1k", "--history", tmp_path / "run")
    told = run(*arguments, missing=SPARK)
    assert told.returncode == 0, told.stderr
    assert check(tmp_path / "run").ok


@pytest.mark.parametrize("arguments", [("check", "."), ("stress", "bounded", "--ops", "1k", "--history", "run")])
def test_without_pyarrow_the_extra_is_named(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = run(*arguments, missing={"pyarrow"})
    assert told.returncode in (1, 2)
    assert "read with pyarrow, which is not installed; pip install 'queueduct[check]'" in told.stderr
    assert "Traceback" not in told.stderr


@pytest.fixture
def too_long(tmp_path):
    """By one operation; all are the same, which nobody gets to see."""
    folder = write(tmp_path / "long", history_of(), "bounded", 2)
    row = pq.read_table(folder / "worker-00000.parquet").slice(0, 1)
    number = (1 << 21) + 1 - pq.read_metadata(folder / "worker-00001.parquet").num_rows
    pq.write_table(row.take(pa.array([0] * number)), folder / "worker-00000.parquet")
    return folder


def test_a_history_that_is_too_long_names_the_extra_for_spark(too_long):
    told = run("check", too_long, missing=SPARK)
    assert told.returncode == 2
    assert "more than 2,097,152 operations is checked on Spark" in told.stderr
    assert "has 2,097,153, and pyspark is not installed; pip install 'queueduct[spark]'" in told.stderr
    assert "Traceback" not in told.stderr


def test_a_history_that_is_too_long_asks_for_a_session(too_long):
    with pytest.raises(ValueError, match=r"is checked on Spark: .* has 2,097,153; give check a session as spark="):
        check(too_long)
