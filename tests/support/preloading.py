"""Libraries that are preloaded into a test's processes, and answer in the system's place: see shims/*.c."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

SOURCES = Path(__file__).parent / "shims"
COMPILER = shutil.which("cc")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler: what is preloaded is built here")


@functools.cache
def built(name: str) -> str:
    """The path of a shim, compiled once in a test run."""
    assert COMPILER is not None
    library = Path(tempfile.mkdtemp(prefix="queueduct-test-shim-")) / f"{name}.so"
    source = SOURCES / f"{name}.c"
    subprocess.run([COMPILER, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True, timeout=120)
    return str(library)


def preload(monkeypatch: pytest.MonkeyPatch, name: str, **settings: object) -> None:
    """Processes that this test starts from now on have the shim, and these settings."""
    monkeypatch.setenv("LD_PRELOAD", built(name))
    for setting, value in settings.items():
        monkeypatch.setenv(setting, os.fspath(value) if isinstance(value, Path) else str(value))
