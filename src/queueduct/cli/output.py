"""What commands print: tables, values below each other, JSON, and a line of progress."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
import time
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import click

__all__ = ["Progress", "below", "colored", "echo_json", "hanging", "in_bytes", "table", "width"]

SAY_SECONDS = 0.25
QUIET_SECONDS = 1.0  # what is done sooner needs no progress
COLORS = {"ok": "green", "behind": "yellow", "warn": "yellow", "stalled": "red", "dropped": "red", "fail": "red"}


def width() -> int:
    return max(40, shutil.get_terminal_size().columns)


def echo_json(value: Any) -> None:
    click.echo(json.dumps(value, indent=2, default=plain))


def plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def colored(word: str) -> str:
    """Returns a state in its colour. click leaves the colour out where there is no terminal, or NO_COLOR is set."""
    return click.style(word, fg=COLORS[word]) if word in COLORS else word


def table(rows: list[tuple[str, ...]], sides: str) -> str:
    """Returns columns in full width, even wider than the terminal: a cut name is of no use."""
    widths = [max(map(bare_length, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(aligned(*cell) for cell in zip(row, widths, sides, strict=True)).rstrip() for row in rows
    )


def bare_length(text: str) -> int:
    return len(click.unstyle(text))


def aligned(text: str, columns: int, side: str) -> str:
    filling = " " * (columns - bare_length(text))
    return filling + text if side == ">" else text + filling


def below(values: Iterable[tuple[str, Any]]) -> None:
    """Prints names and values below each other."""
    rows = list(values)
    columns = max((len(name) for name, _ in rows), default=0)
    for name, value in rows:
        text = f"{value:,}" if type(value) is int else str(value)
        click.echo(f"{name:<{columns}}  " + hanging(text, columns + 2))


def hanging(words: str, indent: int) -> str:
    """Wraps a long value below its beginning."""
    if not sys.stdout.isatty():
        return words
    room = max(20, shutil.get_terminal_size().columns - indent)
    return ("\n" + " " * indent).join(textwrap.wrap(words, room) or [""])


def in_bytes(number: int) -> str:
    """Returns a size in words: 2.5 MB."""
    size = float(number)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


class Progress:
    """One line on a terminal that says how far long work is. Elsewhere it is silent."""

    def __init__(self, words: str, total_bytes: int | None = None) -> None:
        self.words = words
        self.total_bytes = total_bytes
        self.began = time.monotonic()
        self.due = self.began + QUIET_SECONDS
        self.is_shown = False

    def show(self, items: int, read_bytes: int | None = None) -> None:
        now = time.monotonic()
        if now < self.due or not sys.stderr.isatty():
            return
        self.due = now + SAY_SECONDS
        share = ""
        if self.total_bytes and read_bytes is not None:
            part = min(1.0, read_bytes / self.total_bytes)
            share = f" [{'#' * round(20 * part):<20}] {part:4.0%}"
        line = f"{self.words}: {items:,} items, {items / (now - self.began):,.0f} a second{share}"
        click.echo(f"\r\x1b[2K{line[: width() - 1]}", err=True, nl=False)
        self.is_shown = True

    def end(self) -> None:
        if self.is_shown:
            click.echo("\r\x1b[2K", err=True, nl=False)
            self.is_shown = False
