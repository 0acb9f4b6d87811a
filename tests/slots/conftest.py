"""Queues of three slots each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from queueduct import SlotQueue
from tests.slots.lent import FRAME


@pytest.fixture
def frames() -> Iterator[SlotQueue]:
    with SlotQueue.create("frames", 3, item=FRAME) as q:
        yield q


@pytest.fixture
def blobs() -> Iterator[SlotQueue]:
    with SlotQueue.create("blobs", 3, slot_bytes=100) as q:
        yield q
