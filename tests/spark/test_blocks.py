"""The code blocks of README and docs that need Spark run, and run again, beside the queues that they read."""

import pyarrow.parquet
import pytest

from tests.support.pages import all_blocks, run_block

RUN = [block for block in all_blocks() if block.language in ("python", "sh")]
SPARK = [block for block in RUN if block.needs_spark]
PRODUCER = next(block for block in RUN if block.page == "README.md")


@pytest.mark.timeout(900)
def test_the_blocks_that_need_spark_run_twice_and_archive_every_tick_of_the_readme_once(tmp_path):
    assert len(SPARK) >= 3
    for runs in (1, 2):
        for block in (PRODUCER, *SPARK):
            run_block(block, tmp_path, seconds=300)
        files = [pyarrow.parquet.read_table(path) for path in (tmp_path / "lake" / "ticks").glob("*.parquet")]
        positions = sorted(position for table in files for position in table["position"].to_pylist())
        assert positions == list(range(1001 * runs))
