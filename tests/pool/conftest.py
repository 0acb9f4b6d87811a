"""Pools whose workers know the directory of the test: a fork server has the environment of its start."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import queueduct
from queueduct import Workers
from tests.pool import jobs


@pytest.fixture
def workers(queue_dir: Path) -> Callable[..., Workers]:
    def start(queue: Any, function: Callable[[Any], object], **options: Any) -> Workers:
        options = {"initializer": jobs.use_folder, "initargs": (str(queue_dir),), **options}
        return Workers(queue, function, **options)

    return start


@pytest.fixture
def drained(queue_dir: Path) -> Callable[[str], list[Any]]:
    """Everything that is in a queue."""

    def drain(name: str) -> list[Any]:
        with queueduct.open(name) as queue:
            queue.shutdown()
            return list(queue)

    return drain
