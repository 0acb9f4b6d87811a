"""What the README shows of Spark runs, and runs again."""

import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet

README = (Path(__file__).parent.parent.parent / "README.md").read_text()


def run(code: str, directory: Path) -> None:
    done = subprocess.run([sys.executable, "-c", code], cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_readme_example_archives_every_tick_once(tmp_path):
    producer, _, spark = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    for runs in (1, 2):
        run(producer, tmp_path)
        run(spark, tmp_path)
        files = [pyarrow.parquet.read_table(path) for path in (tmp_path / "lake" / "ticks").glob("*.parquet")]
        positions = sorted(position for table in files for position in table["position"].to_pylist())
        assert positions == list(range(1001 * runs))
