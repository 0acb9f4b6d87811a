"""doctor and bench: they try the real thing, and a machine that lacks something hears what to do."""

from __future__ import annotations

import json
import os

import pytest

import queueduct
from queueduct.cli.machine import checks
from tests.support.children import needs_root
from tests.support.command import call, done


def test_a_machine_on_which_the_tests_run_is_well(queue_dir):
    result = call("doctor", "--json")
    found = json.loads(result.stdout)
    assert result.exit_code == 0, found
    assert {each["what"] for each in found} >= {"Python", "directory", "memory", "locks", "wake-up", "/proc"}
    assert all(each["remedy"] for each in found if each["state"] != "ok")
    assert list(queue_dir.iterdir()) == [], "it leaves nothing behind"
    assert "Python" in done("doctor")


def test_a_directory_that_is_none_is_a_failure_with_a_remedy(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "missing"):
        result = call("doctor", "--dir", path)
        assert result.exit_code == 1, result.output
        assert "name another one: --dir, or QUEUEDUCT_DIR" in result.stdout
    assert not (tmp_path / "missing").exists()


def test_a_directory_of_everybody_is_a_warning(tmp_path):
    os.chmod(tmp_path, 0o777)
    (finding,) = [
        each for each in json.loads(done("doctor", "--dir", tmp_path, "--json")) if each["what"] == "directory"
    ]
    assert finding["state"] == "warn"
    assert "chmod 700" in finding["remedy"]


@needs_root
def test_little_memory_is_a_warning_and_none_a_failure(tmp_path):
    """In a file system of 64 MB, as docker gives it, and in one that is full."""
    os.makedirs(tmp_path / "small")
    if os.system(f"mount -t tmpfs -o size=64m,mode=700 none {tmp_path}/small") != 0:
        pytest.skip("nothing can be mounted here")
    try:
        finding = checks.memory(tmp_path / "small")
        assert (finding.state, "--shm-size" in finding.remedy) == ("warn", True)
        assert checks.holes(tmp_path / "small").state == "ok"
        (tmp_path / "small" / "rest").write_bytes(bytes(64 << 20))
        result = call("doctor", "--dir", tmp_path / "small")
        assert result.exit_code == 1
        assert "fail" in result.stdout
    finally:
        os.system(f"umount {tmp_path}/small")


def test_locks_that_do_not_lock_are_found_out(tmp_path, monkeypatch):
    monkeypatch.setattr(checks.fcntl, "fcntl", lambda *_: None)
    assert checks.locks(tmp_path).state == "fail"


@pytest.mark.parametrize("kind", ["growing", "overwriting", "slots"])  # the examples in the help run the others
def test_a_kind_is_measured_beside_the_standard_librarys(kind):
    found = json.loads(done("bench", kind, "--seconds", "0.5", "--json"))
    assert [*found["results"]] == [f"{kind}, one a call", f"{kind}, batches of 256", "multiprocessing.Queue"]
    assert found["results"]["multiprocessing.Queue"]["ratio"] == 1.0
    assert all(each["per_second"] > 0 and len(each["rounds"]) >= 3 for each in found["results"].values())
    assert queueduct.queues() == []
