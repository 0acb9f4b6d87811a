"""CPython's own tests of queue and multiprocessing pass on our queues; what cannot is listed with its reason."""

import functools
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
METHODS = ("threads", "fork", "spawn", "forkserver")
LEAST_CASES = {"threads": 16, "fork": 13, "spawn": 13, "forkserver": 13}

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.skipif(
        importlib.util.find_spec("test.test_queue") is None,
        reason=f"CPython's tests are not installed with {sys.executable} (Debian: libpython3.x-testsuite): NOT RUN",
    ),
]


@functools.cache
def outcome(method):
    done = subprocess.run(
        [sys.executable, "-W", "default", "-m", "tests.dropin.cpython_cases", method],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def left_out():
    from tests.dropin.cpython_cases import LEFT_OUT

    return LEFT_OUT


@pytest.mark.parametrize("method", METHODS)
def test_every_case_of_cpython_that_is_not_listed_passes(method, record_property):
    found = outcome(method)
    assert not found["bad"], "\n".join(f"{name}\n{text}" for name, text in found["bad"])
    assert not found["skipped"]
    expected = [name for name in found["found"] if name not in left_out()]
    assert sorted(found["passed"]) == sorted(expected)
    assert len(found["found"]) >= LEAST_CASES[method]
    record_property("cases", f"{len(found['passed'])} of {len(found['found'])}")
    print(f"{method}: {len(found['passed'])} of {len(found['found'])} cases of Python {sys.version.split()[0]} passed")


def test_every_listed_case_exists_and_is_on_the_page():
    existing = {name for method in METHODS for name in outcome(method)["found"]}
    assert set(left_out()) <= existing
    page = (ROOT / "docs" / "drop-in.md").read_text()
    for name in left_out():
        assert re.search(rf"`{name.split('.')[1]}`", page), f"{name} is not in docs/drop-in.md"
