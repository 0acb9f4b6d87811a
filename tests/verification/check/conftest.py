"""The room of the checker's own proof: its modules are found by their names."""

import pytest

pytest.importorskip("pyarrow", reason="the checker needs pyarrow, an extra: make test installs it")
