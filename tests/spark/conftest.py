"""One Spark session for all tests of this room, and one directory of queues that its processes know."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import queueduct

pytest.importorskip("pyspark", reason="Spark is an extra: make test installs it")


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
