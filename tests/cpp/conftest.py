"""The C++ program of these tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import compiled


@pytest.fixture(scope="session")
def peer() -> Path:
    return compiled.peer()
