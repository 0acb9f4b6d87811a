"""Every code block of README and docs runs, and runs again, with all the others in one directory.

A program in C or C++ is saved under its name, for the commands after it. A block that is tagged text is a drawing, one
that is tagged console installs something or calls make: what CI itself does. The blocks that need Spark are run by
tests/spark/test_blocks.py.
"""

import importlib.util
import re

import pytest

from tests.support.pages import all_blocks, run_block

BLOCKS = all_blocks()
RUN = [block for block in BLOCKS if block.language in ("python", "sh", "c", "cpp")]
INSTALLED_IF_WANTED = ("duckdb", "polars", "pyarrow", "torch")


def missing_module(code: str) -> str | None:
    """A module that the block imports, that is not required, and that is not here."""
    words = set(re.findall(r"\w+", code))
    wanted = [name for name in INSTALLED_IF_WANTED if name in words]
    return next((name for name in wanted if importlib.util.find_spec(name) is None), None)


def test_each_block_says_what_it_is():
    assert {block.language for block in BLOCKS} <= {"python", "sh", "c", "cpp", "text", "console"}
    for block in BLOCKS:
        if block.language == "console":
            commands = [line.split("#")[0].strip() for line in block.code.splitlines() if line.strip()]
            assert all(command.startswith(("pip install", "make ")) for command in commands), block


@pytest.mark.timeout(600)
def test_all_blocks_run_twice_in_one_directory(tmp_path):
    left_out = {}
    for _ in range(2):
        for block in RUN:
            if block.needs_spark:
                continue
            if missing := missing_module(block.code):
                left_out[f"{block.page}:{block.line}"] = missing
                continue
            run_block(block, tmp_path)
    assert set(left_out.values()) <= {"torch"}, "make test installs all others"
