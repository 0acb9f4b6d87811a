"""The site, built once for all tests of this folder."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of the built site."""
    for module in ("sphinx", "myst_parser", "furo", "pyarrow"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed: make test installs it, as does make docs")
    out = tmp_path_factory.mktemp("site") / "docs"
    command = [sys.executable, "-m", "docs.site", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == str(out / "index.html")
    return out
