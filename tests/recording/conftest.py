"""Arrow is an extra: where pyarrow is missing these tests say so."""

import gc
from collections.abc import Iterator

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is an extra: make test installs it")


@pytest.fixture(scope="session", autouse=True)
def thawed_at_the_end() -> Iterator[None]:
    """DuckDB complains at the end of a process that its objects, which other tests have frozen, are still there."""
    yield
    gc.unfreeze()
