"""The demonstration reads its archive with pyarrow, an extra: where it is missing these tests say so."""

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is an extra: make test installs it")
