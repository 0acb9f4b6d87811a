"""The room of the checker's own proof: its modules are found by their names."""

import pytest

pytest.importorskip("pyspark", reason="the checker is a part of the Spark room: make test installs it")
