"""What tests of races get besides."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture
def short_turns() -> Iterator[None]:
    """Threads change places often, so that they meet in the middle of things."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(before)
