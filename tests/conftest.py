"""What every test gets: a directory of its own for queues, and the option --long."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from queueduct.segments.segment import is_on_disk
from tests.support.children import Children


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run the campaigns in their long form, and nothing else")


def pytest_configure() -> None:
    # A shell starts what runs in its background with SIGINT ignored, and children would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Thousands of children import numpy: a third of such a start goes to threads for algebra, which none of them does.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # A Java that lives for seconds spends half its time on compiling well what it hardly runs.
    os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        uses_spark = "spark" in getattr(item, "fixturenames", ()) or "/spark/" in str(item.path)
        if uses_spark and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(300))  # the first of them starts Spark
    if not config.getoption("--long"):
        for item in items:
            if item.get_closest_marker("long"):
                item.add_marker(pytest.mark.skip(reason="takes minutes: it runs with --long"))
        return
    others = [item for item in items if not has_long_form(item)]
    items[:] = [item for item in items if has_long_form(item)]
    config.hook.pytest_deselected(items=others)
    for item in items:
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(1800))


def has_long_form(item: pytest.Item) -> bool:
    """Is it there in the long form only, or does it do more in that?"""
    return item.get_closest_marker("long") is not None or "is_long" in getattr(item, "fixturenames", ())


def pytest_collection_finish() -> None:
    """What is here by now, thousands of tests, stays: a test that collects garbage need not look at it again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def frozen_reports() -> None:
    """The same for the reports of the tests so far: a collection took a fifth of a second after some thousands."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def is_long(request: pytest.FixtureRequest) -> bool:
    """Was the long form asked for?"""
    return bool(request.config.getoption("--long"))


@pytest.fixture(autouse=True)
def queue_dir(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where this test's queues live; gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="queueduct-test-", dir="/dev/shm"))
    monkeypatch.setenv("QUEUEDUCT_DIR", str(folder))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this test's queues live, and those of the processes that it starts: on a disk."""
    if not is_on_disk(tmp_path):
        pytest.skip("the temporary directory is in memory here")
    monkeypatch.setenv("QUEUEDUCT_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def short_turns() -> Iterator[None]:
    """Threads change places often, so that they meet in the middle of things."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(before)


@pytest.fixture
def children() -> Iterator[Children]:
    """Starts processes; whatever still runs at the end of the test is killed."""
    started = Children()
    yield started
    started.kill_all()


@pytest.fixture(scope="session")
def spark_queue_dir() -> Iterator[Path]:
    """Java's environment is that of its start, so its children look for queues where they were then."""
    folder = Path(tempfile.mkdtemp(prefix="queueduct-test-", dir="/dev/shm"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def spark(spark_queue_dir: Path) -> Iterator[object]:
    pytest.importorskip("pyspark", reason="Spark is an extra: make test installs it")
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
