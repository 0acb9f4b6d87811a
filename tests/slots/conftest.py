"""Queues of three slots each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lent import FRAME

from queueduct import SlotQueue


@pytest.fixture
def frames() -> Iterator[SlotQueue]:
    with SlotQueue.create("frames", 3, item=FRAME) as q:
        yield q


@pytest.fixture
def blobs() -> Iterator[SlotQueue]:
    with SlotQueue.create("blobs", 3, slot_bytes=100) as q:
        yield q
