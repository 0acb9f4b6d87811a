"""What a type checker says of programs that use queueduct.

The folder ``programs`` has them. A line that ends in ``# error: code`` is a mistake which mypy must name by that code;
of all the others it must find nothing, ``assert_type`` included.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy", reason="mypy judges the programs, and only the environment of lint has it")

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))
Found = set[tuple[int, str]]


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Found]:
    """What mypy finds in each program: lines and codes. One run for all."""
    folder = tmp_path_factory.mktemp("mypy")
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file=",
        f"--cache-dir={folder}",
        "--hide-error-context",
    ]
    run = subprocess.run([*command, *map(str, PROGRAMS)], cwd=folder, capture_output=True, text=True, check=False)
    assert run.returncode in (0, 1), run.stdout + run.stderr
    found: dict[str, Found] = {}
    for line in run.stdout.splitlines():
        if error := re.fullmatch(r"(.+?):(\d+): error: .*\[([\w-]+)\]", line):
            found.setdefault(Path(error[1]).name, set()).add((int(error[2]), error[3]))
        else:
            assert ": note: " in line or line.startswith(("Found ", "Success")), line
    return found


def expected(program: Path) -> Found:
    lines = enumerate(program.read_text().splitlines(), 1)
    return {(number, mark[1]) for number, line in lines if (mark := re.search(r"# error: ([\w-]+)$", line))}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_mypy_finds_the_mistakes_of_a_program_and_nothing_else(program: Path, reported: dict[str, Found]) -> None:
    assert reported.get(program.name, set()) == expected(program)


def test_every_program_is_judged() -> None:
    assert len(PROGRAMS) >= 5
    assert sum(len(expected(program)) for program in PROGRAMS) >= 25
