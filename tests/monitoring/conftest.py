"""A monitor of the test's own directory, with short spans."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from queueduct.monitoring import Monitor

INTERVAL = 0.05


@pytest.fixture
def monitor() -> Iterator[Monitor]:
    with Monitor(interval=INTERVAL, window=0.5, history=60) as made:
        yield made
