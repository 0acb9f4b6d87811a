"""One Spark session for all tests of this room, and one directory of queues that its processes know."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import queueduct

pytest.importorskip("pyspark", reason="Spark is an extra: make test installs it")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "/spark/" in str(item.path) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(300))  # the first of them starts Spark


@pytest.fixture(scope="session")
def spark_queue_dir() -> Iterator[Path]:
    """Java's environment is that of its start, so its children look for queues where they were then."""
    folder = Path(tempfile.mkdtemp(prefix="queueduct-test-", dir="/dev/shm"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def spark(spark_queue_dir: Path) -> Iterator[object]:
    from queueduct.spark import session

    before = os.environ.get("QUEUEDUCT_DIR")
    os.environ["QUEUEDUCT_DIR"] = str(spark_queue_dir)
    os.environ["SPARK_LOCAL_DIRS"] = tempfile.mkdtemp(prefix="queueduct-test-spark-")
    started = session("local[2]", spark__sql__shuffle__partitions="1")
    if before is None:
        del os.environ["QUEUEDUCT_DIR"]
    else:
        os.environ["QUEUEDUCT_DIR"] = before
    yield started
    started.stop()
    shutil.rmtree(os.environ.pop("SPARK_LOCAL_DIRS"), ignore_errors=True)


@pytest.fixture(autouse=True)
def queue_dir(spark_queue_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The one that the session knows, empty for each test."""
    monkeypatch.setenv("QUEUEDUCT_DIR", str(spark_queue_dir))
    yield spark_queue_dir
    for info in queueduct.queues():
        with contextlib.suppress(FileNotFoundError):
            queueduct.unlink(info.name)


@pytest.fixture(autouse=True)
def no_query_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that fails must not leave its query to the next one."""
    yield
    if "spark" in request.fixturenames:
        for query in request.getfixturevalue("spark").streams.active:
            query.stop()


@pytest.fixture
def ticks() -> Iterator[queueduct.EventQueue]:
    """An empty queue of ticks."""
    from tests.spark.rows import TICK

    with queueduct.EventQueue.create("ticks", item=TICK) as queue:
        yield queue


@pytest.fixture(params=["bounded", "growing", "slots", "overwriting"])
def jobs(request: pytest.FixtureRequest) -> Iterator[queueduct.Queue]:
    """An empty queue of each kind that is drained."""
    from tests.spark.spooling import MAKERS

    with MAKERS[request.param]() as queue:
        yield queue
