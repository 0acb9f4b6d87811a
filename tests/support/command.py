"""The command `queueduct`: in this process, where a test needs many calls, or as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner, Result

from queueduct.cli import main

PROGRAM = Path(sys.executable).with_name("queueduct")


def call(*arguments: object, given: str | bytes | None = None) -> Result:
    """Runs a command in this process, with this on its stdin."""
    result = CliRunner().invoke(main, list(map(str, arguments)), input=given)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def done(*arguments: object, given: str | bytes | None = None) -> str:
    """Runs a command that must succeed, and say nothing on stderr. Returns its stdout."""
    result = call(*arguments, given=given)
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    return result.stdout


def refused(*arguments: object, given: str | bytes | None = None, code: int = 2) -> str:
    """Runs a command that must fail with this exit code. Returns what its error says."""
    result = call(*arguments, given=given)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result.stderr.rpartition("Error: ")[2].strip()


class Running(subprocess.Popen[str]):
    """Is killed when a test fails beside it, so that the failure is told at once."""

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is not None:
            self.kill()
        super().__exit__(kind, error, trace)  # type: ignore[arg-type]  # it ignores them


def started(*arguments: object, **options: object) -> Running:
    """Starts the program. Its output goes to pipes, unless the options say otherwise."""
    usual = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return Running([str(PROGRAM), *map(str, arguments)], **{**usual, **options})  # type: ignore[call-overload]


def shell(line: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a line of a shell in which `queueduct` is this one, and a failure in a pipe is one."""
    path = f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        env={**os.environ, "PATH": path},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
