"""Every kind, run hard and proved: between threads, between processes, and with kills."""

import pytest
from rich.console import Console

from queueduct.segments.kinds import KINDS
from queueduct.verification.check import check, needs_spark
from queueduct.verification.history.format import read_history
from queueduct.verification.stress.run import Options, run

WAYS = {"threads": {"threads": True}, "processes": {}, "kills": {"kill": 100.0, "batch": 2, "capacity": 64}}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_million_operations_are_proved_right(request, kind, way, tmp_path):
    operations = 1_000_000  # `make prove` has the long form
    result = run(Options(kind, ops=operations, history=tmp_path / "run", seed=1, **WAYS[way]), Console(quiet=True))
    spark = request.getfixturevalue("spark") if needs_spark(read_history(tmp_path / "run")) else None
    verdict = check(tmp_path / "run", spark=spark)
    assert verdict.violations == []
    assert verdict.ok
    assert result.killed > 0 or way != "kills"
    assert verdict.operations == result.rows >= operations // 2
