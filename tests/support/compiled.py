"""C and C++ programs, compiled once for each state of their sources and of the installed headers."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import queueduct

ROOT = Path(__file__).parents[2]
INCLUDE = Path(queueduct.get_include())
CPP = ("g++", "-std=c++20", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-pthread")
C = ("gcc", "-std=c11", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-pthread")


def compiled(*sources: Path, compiler: tuple[str, ...] = CPP, flags: tuple[str, ...] = ()) -> Path:
    """Returns the program. It is kept in build/, under a name that tells what it was made of."""
    told = hashlib.sha256(repr((compiler, flags)).encode())
    for path in (*sources, *sorted(INCLUDE.rglob("*.h*"))):
        told.update(path.read_bytes())
    program = ROOT / "build" / "compiled" / f"{sources[0].stem}-{told.hexdigest()[:20]}"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        made = program.with_name(f"{program.name}.{os.getpid()}")
        done = subprocess.run(
            [*with_cache(), *compiler, *flags, f"-I{INCLUDE}", *map(str, sources), "-o", str(made)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        made.rename(program)
    return program


def with_cache() -> list[str]:
    found = shutil.which("ccache")
    return [found] if found else []


def peer() -> Path:
    """The C++ program of the tests."""
    return compiled(ROOT / "tests" / "cpp" / "peer.cpp")


def run(program: Path, *arguments: object, stdin: str | None = None) -> str:
    """Runs a program to its end; what it printed. Fails if it failed."""
    done = subprocess.run(
        [str(program), *map(str, arguments)], input=stdin, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def error_of(program: Path, *arguments: object) -> str:
    """Runs a program that fails; what it said."""
    done = subprocess.run([str(program), *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1, (done.returncode, done.stdout, done.stderr)
    return done.stderr.strip()
