"""The code blocks of README and docs, and how a reader would run them: each from a file or a shell of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]


class Block(NamedTuple):
    """A fenced block: its page, the line it starts at, its language, and what is in it."""

    page: str
    line: int
    language: str
    code: str

    @property
    def needs_spark(self) -> bool:
        return "queueduct.spark" in self.code or re.search(r"queueduct (archive|aggregate|demo)", self.code) is not None


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text()
    return [
        Block(str(page.relative_to(ROOT)), text.count("\n", 0, found.start()) + 1, found[1], found[2])
        for found in re.finditer(r"^```(.*)\n((?:.*\n)*?)```$", text, re.MULTILINE)
    ]


def all_blocks() -> list[Block]:
    return [block for page in PAGES for block in blocks_of(page)]


def run_block(block: Block, directory: Path, seconds: float = 120) -> str:
    """Runs a block in a directory, and returns what it has printed. A source file is only saved there."""
    if block.language in ("c", "cpp"):
        (directory / block.code.split()[1]).write_text(block.code)  # its first line is a comment with its name
        return ""
    commands = {"python": [sys.executable, "example.py"], "sh": ["bash", "-euo", "pipefail", "example.sh"]}
    command = commands[block.language]
    (directory / command[-1]).write_text(block.code)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        command,
        cwd=directory,
        env=os.environ | {"PATH": path} | ({"HOME": str(directory)} if block.language == "sh" else {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, f"{block.page}:{block.line} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout
