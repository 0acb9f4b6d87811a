"""The wheel that this environment was made from, in an environment that has nothing else, and no compiler.

`make wheels` does the same with the wheels that are for others: built from the sdist, on every Python.
"""

import importlib.metadata
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

TRIAL = Path(__file__).parent.parent / "tools" / "try_wheel.py"


def wheel_of_this_environment():
    told = importlib.metadata.distribution("queueduct").read_text("direct_url.json")
    address = urlsplit(json.loads(told)["url"])
    return Path(unquote(address.path))


def try_wheel(wheel):
    return subprocess.run(
        [sys.executable, TRIAL, wheel], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )


@pytest.mark.slow
def test_a_stranger_installs_the_wheel_without_a_compiler_and_runs_the_example():
    wheel = wheel_of_this_environment()
    assert wheel.suffix == ".whl", f"make setup installs a wheel, and this was installed from {wheel}"
    done = try_wheel(wheel)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^ok +build +queueduct", done.stdout, re.MULTILINE), done.stdout


@pytest.mark.long
def test_a_wheel_that_lacks_a_module_is_found_out(tmp_path):
    """The trial sees what is in the wheel, not what is in this directory or in this environment."""
    wheel = wheel_of_this_environment()
    lacking = tmp_path / wheel.name
    with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(lacking, "w") as part:
        for name in whole.namelist():
            if name != "queueduct/errors.py":
                part.writestr(name, whole.read(name))
    done = try_wheel(lacking)
    assert done.returncode != 0
    assert "queueduct.errors" in done.stderr, done.stdout + done.stderr
