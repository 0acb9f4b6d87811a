"""What a person sees of a session that does its work: nothing."""

from __future__ import annotations

import sys

from queueduct.spark.sessions import workers_are_ours

READS_ENOUGH = """
import time
from queueduct.spark import session
if __name__ == "__main__":
    spark = session("local[1]")
    def endless(batches):
        for batch in batches:
            while True:
                yield batch
    rows = spark.range(1000).mapInArrow(endless, "id long").limit(5000).collect()
    time.sleep(2)  # the worker learns that it is closed
    print(len(rows), spark.range(10).mapInArrow(lambda batches: batches, "id long").count())
    spark.stop()
"""


def test_workers_that_spark_closes_write_nothing_to_the_terminal(children):
    """The first one is closed in the midst of its rows. ``run`` fails if there is anything on stderr."""
    assert children.run(READS_ENOUGH, options=()) == "5000 10\n"


def test_only_workers_with_this_python_are_started_by_our_daemon(monkeypatch):
    """Another one may have no queueduct, and Spark would get no worker at all."""
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    assert not workers_are_ours("local[2]", {})
    assert workers_are_ours("local[2]", {"spark.pyspark.python": sys.executable})
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    assert workers_are_ours("local[2]", {})
    assert not workers_are_ours("spark://somewhere:7077", {})
    assert not workers_are_ours("local[2]", {"spark.pyspark.python": "/another/python3"})
