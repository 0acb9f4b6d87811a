"""A real standalone cluster, started from the pip package: a master and two workers, each with its own processes."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

import queueduct
from queueduct.spark.java import find_java, write_shim
from tests.spark.rows import check_each_once, numbered, parquet_numbers, queue_numbers
from tests.support.deadline import until
from tests.verification.check.histories import find, history_of
from tests.verification.check.judging import verdict_on
from tests.verification.check.writing import write

SCRIPT = """
import sys
from queueduct.spark import session
spark = session(sys.argv[1], spark__executor__memory="512m", spark__cores__max="2", spark__executor__cores="1")
rows = spark.readStream.format("queueduct").options(queue="ticks", maxRowsPerTrigger=40000, partitions=4).load()
folder = sys.argv[2]
for sink, name in (("parquet", "lake"), ("queueduct", "out")):
    writer = rows.writeStream.format(sink).option("checkpointLocation", f"{folder}/{name}-checkpoint")
    writer = writer.option("queue", name) if sink == "queueduct" else writer.option("path", f"{folder}/{name}")
    assert writer.trigger(availableNow=True).start().awaitTermination(240)
hosts = spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()
print(len(hosts) - 1)
spark.stop()
"""


CHECK = """
import json, sys
from queueduct.spark import session
from queueduct.verification.check import check
spark = session(sys.argv[1], spark__executor__memory="512m", spark__cores__max="2", spark__executor__cores="1")
print(json.dumps([check(folder, spark=spark, width=8).as_dict() for folder in sys.argv[2:]]))
spark.stop()
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """Its address."""
    write_shim(folder / "java", find_java())
    home = Path(pyspark.__file__).parent
    environment = dict(
        os.environ,
        JAVA_HOME=str(folder / "java"),
        SPARK_HOME=str(home),
        PYSPARK_PYTHON=sys.executable,
        SPARK_LOCAL_IP="127.0.0.1",
        SPARK_LOCAL_DIRS=str(folder / "local"),
        SPARK_WORKER_DIR=str(folder / "work"),
    )
    address = f"spark://127.0.0.1:{free_port()}"
    port = address.rpartition(":")[2]
    master = ["deploy.master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", "0"]
    worker = ["deploy.worker.Worker", "--cores", "1", "--memory", "1g", "--webui-port", "0", address]
    started: list[subprocess.Popen[bytes]] = []
    logs = [folder / "master.log", folder / "worker1.log", folder / "worker2.log"]
    try:
        for (name, *arguments), log in zip((master, worker, worker), logs, strict=True):
            with log.open("wb") as file:
                command = [home / "bin" / "spark-class", f"org.apache.spark.{name}", *arguments]
                started.append(subprocess.Popen(command, env=environment, stdout=file, stderr=file))
            until(lambda log=log: "tarting" in log.read_text() or "egister" in log.read_text(), log.name, 60)
        until(lambda: logs[0].read_text().count("Registering worker") == 2, "two workers", 120)
        yield address
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait(30)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_source_and_sink_work_on_a_standalone_cluster(ticks, tmp_path):
    ticks.put_many(numbered(0, 100_000))
    with queueduct.EventQueue.create("out", item=ticks.item) as out, cluster(tmp_path) as address:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, address, str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert int(done.stdout) == 2, "both workers had an executor"
        check_each_once(parquet_numbers(tmp_path / "lake"), 100_000)
        check_each_once(queue_numbers(out), 100_000)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_check_says_the_same_on_a_standalone_cluster(tmp_path):
    right, wrong = history_of(60, True), history_of(60, True)
    wrong.remove(find(wrong, "get", 105))
    wrong.append(dict(find(wrong, "get", 115), worker=77, invoke_ns=169, return_ns=170))
    folders = [write(tmp_path / name, rows, "bounded", 2) for name, rows in (("right", right), ("wrong", wrong))]
    with cluster(tmp_path) as address:
        done = subprocess.run(
            [sys.executable, "-c", CHECK, address, *map(str, folders)],
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    verdicts = json.loads(done.stdout)
    assert [verdict["ok"] for verdict in verdicts] == [True, False]
    for verdict, rows in zip(verdicts, (right, wrong), strict=True):
        here = verdict_on(rows, "bounded", 2)
        assert verdict["operations"] == here.operations
        assert verdict["counts"] == here.counts
