"""A real terminal without a person: tmux, which draws what a program writes and says what stands on its screen."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.deadline import until

__all__ = ["COMMAND", "Terminal", "missing", "terminal"]

COMMAND = str(Path(sys.executable).with_name("queueduct"))


def missing() -> str | None:
    """Says what is not installed, or None."""
    if shutil.which("tmux") is None:
        return "there is no tmux: make test installs Debian's as root, as does tools/browser.sh"
    return None


class Terminal:
    """A terminal of some columns and lines, with a shell in it."""

    def __init__(self, folder: Path, columns: int, lines: int, **environment: str) -> None:
        self._tmux = ["tmux", "-S", str(folder / "socket"), "-f", "/dev/null"]
        shell = "env PS1='ready> ' bash --norc --noprofile"
        size = ["-x", str(columns), "-y", str(lines)]
        given = [part for pair in environment.items() for part in ("-e", "=".join(pair))]
        self._run("new-session", "-d", *size, "-s", "t", *given, shell)
        self.until("ready>")

    def start(self, *arguments: str) -> None:
        """Starts the command ``queueduct`` with these arguments; afterwards its exit code is shown, as ``exit N``."""
        self._run("send-keys", "-t", "t", "-l", f"{shlex.join([COMMAND, *arguments])}; echo exit $?")
        self._run("send-keys", "-t", "t", "Enter")

    def type(self, line: str) -> None:
        self._run("send-keys", "-t", "t", "-l", line)
        self._run("send-keys", "-t", "t", "Enter")

    def press(self, *keys: str) -> None:
        self._run("send-keys", "-t", "t", *keys)

    def screen(self) -> str:
        return self._run("capture-pane", "-p", "-t", "t")

    def styled(self) -> str:
        """The screen with its colours."""
        return self._run("capture-pane", "-p", "-e", "-t", "t")

    def resize(self, columns: int, lines: int) -> None:
        self._run("resize-window", "-t", "t", "-x", str(columns), "-y", str(lines))

    def until(self, expected: str | Callable[[str], object]) -> str:
        """Waits until the screen shows a text, or fulfils a condition."""
        seen = ""

        def shows() -> object:
            nonlocal seen
            seen = self.screen()
            return expected in seen if isinstance(expected, str) else expected(seen)

        try:
            until(shows, "the screen")
        except AssertionError:
            raise AssertionError(f"the screen has never shown {expected!r}, but\n{seen}") from None
        return seen

    def of_programs(self, what: str) -> str:
        return self._run("display-message", "-p", "-t", "t", what).strip()

    def close(self) -> None:
        subprocess.run([*self._tmux, "kill-server"], capture_output=True, check=False)

    def _run(self, *arguments: str) -> str:
        return subprocess.run([*self._tmux, *arguments], capture_output=True, text=True, check=True).stdout


@contextmanager
def terminal(columns: int = 80, lines: int = 24, **environment: str) -> Iterator[Terminal]:
    folder = Path(tempfile.mkdtemp(prefix="queueduct-test-tmux-"))
    given = {"QUEUEDUCT_DIR": os.environ["QUEUEDUCT_DIR"], "LANG": "C.UTF-8", **environment}
    made = Terminal(folder, columns, lines, **given)
    try:
        yield made
    finally:
        made.close()
        shutil.rmtree(folder, ignore_errors=True)
