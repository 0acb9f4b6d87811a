"""What tests of memory need: functions of the C library replaced by their own."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def preload(tmp_path: Path) -> Callable[[str], str]:
    """Compile C code to what LD_PRELOAD takes."""

    def compiled(code: str) -> str:
        compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("c++")
        if compiler is None:
            pytest.skip("no compiler here")
        source, library = tmp_path / "preload.c", tmp_path / "preload.so"
        source.write_text(code)
        subprocess.run([compiler, "-x", "c", "-shared", "-fPIC", "-o", library, source], check=True)
        return str(library)

    return compiled
