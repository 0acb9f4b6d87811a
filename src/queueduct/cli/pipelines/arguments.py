"""Checks of what archive and aggregate are given, in the second before Spark starts and not ten seconds after it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

import queueduct
from queueduct.segments.kinds import KINDS
from queueduct.spark.times import duration, event_time

__all__ = ["check_aggregate", "check_archive"]

MASTER = re.compile(r"local(\[(\*|[1-9]\d*)(,\s*[1-9]\d*)?\])?|(spark|k8s)://\S+|yarn")
POSITION = "position"  # the column that the source adds
NAMED = re.compile(r"(.*\S)\s+as\s+`?(\w+)`?\s*", re.IGNORECASE | re.DOTALL)
TEXT = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\"")
WORD = re.compile(r"`[^`]+`|[A-Za-z_]\w*")
CONSTANTS = {"null", "true", "false", "current_date", "current_timestamp", "localtimestamp", "current_user"}


def check_archive(queue: str, to: Path, partition_by: Sequence[str], shared: dict[str, Any]) -> None:
    """Raises UsageError, which names the option, for what cannot be archived so."""
    item = check_shared(queue, shared)
    columns = columns_of(item)
    for name in partition_by:
        if name not in columns:
            raise wrong("--partition-by", f"there is no field {name!r} in {queue!r}; it has {', '.join(columns)}")
    check_writable("--to", to)
    check_writable("--checkpoint", shared["checkpoint"] or to / "_checkpoint")


def check_aggregate(queue: str, to: str, given: dict[str, Any]) -> None:
    """The same for what cannot be aggregated so."""
    item = check_shared(queue, given)
    if not isinstance(item, np.dtype) or item.names is None:
        raise click.UsageError(f"only records can be aggregated: the queue {queue!r} has items of {item}")
    for option in ("window", "watermark"):
        try:
            length = duration(given[option])
        except ValueError as error:
            raise wrong(f"--{option}", str(error)) from error
        if option == "window" and not any(int(number) for number in re.findall(r"\d+", length)):
            raise wrong("--window", f"a window is longer than nothing: {given[option]!r}; 1s and 500ms are windows")
    try:
        event_time(item, given["time"])
    except ValueError as error:
        raise wrong("--time", f"{error}; name one of them") from error
    columns = columns_of(item)
    for name in given["by"]:
        if name.partition(".")[0] not in columns:
            raise wrong("--by", f"there is no field {name!r} in {queue!r}; it has {', '.join(columns)}")
    results = ["start", *(name.rpartition(".")[2] for name in given["by"])]
    for text in given["aggregates"]:
        check_expression(text, columns)
        results.append(name_of(text))
    twice = next((name for name in results if results.count(name) > 1), None)
    if twice is not None:
        raise wrong("--agg", f"each field of a result needs a name of its own: {twice!r} comes twice; add 'as NAME'")
    check_target(to, results, given["directory"])
    check_writable("--checkpoint", given["checkpoint"])


def check_shared(queue: str, shared: dict[str, Any]) -> Any:
    """Checks the options of both. Returns the type of the queue's items."""
    if not MASTER.fullmatch(shared["master"]):
        raise wrong("--master", f"it is no address of Spark: {shared['master']!r}; local[*] is this machine")
    if shared["every"] is not None:
        try:
            duration(shared["every"])
        except ValueError as error:
            raise wrong("--every", str(error)) from error
    start = shared["start"]
    if start is not None and start not in ("earliest", "latest") and not start.isdecimal():
        raise wrong("--start", f"it is earliest, latest or a position: {start!r}")
    with queueduct.watch(queue, directory=shared["directory"]) as watch:
        item, is_log = watch.item, KINDS[watch.kind].is_log
        if shared["reader"] is not None and is_log:
            held = [reader for reader in watch.readers() if reader.name == shared["reader"] and reader.is_attached]
            if held:
                raise queueduct.ReaderInUse(
                    f"the reader {shared['reader']!r} of {queue!r} is held by a live process: end that, or name another"
                )
    if item is object:
        raise click.UsageError(
            f"Spark has no columns for Python objects: the queue {queue!r} has item=object; use a queue of records"
        )
    return item


def columns_of(item: Any) -> list[str]:
    names = item.names if isinstance(item, np.dtype) and item.names is not None else ("value",)
    return [*names, POSITION]


def check_expression(text: str, columns: list[str]) -> None:
    """Finds fields that are not there, and brackets without their other half; all else is left to Spark's parser."""
    bare = TEXT.sub("''", text)
    if bare.count("(") != bare.count(")") or "(" not in bare:
        raise wrong("--agg", f"it is no aggregate: {text!r}; write it as max(px), or sum(px * qty) as turnover")
    if "->" in bare:  # a function of its own names
        return
    found = NAMED.fullmatch(bare)
    known = {column.lower() for column in columns}
    for name in operands(bare if found is None else found[1]):
        if name.lower() not in known:
            raise wrong("--agg", f"there is no field {name!r} in {text!r}; there is {', '.join(columns)}")


def operands(text: str) -> Iterator[str]:
    """Yields the words that can be nothing but a field: between brackets, commas and operators, on both sides."""
    for found in WORD.finditer(text):
        before, after = text[: found.start()].rstrip(), text[found.end() :].lstrip()
        if before[-1:] in tuple("(,+-*/%<>=") and before and after[:1] in tuple("),+-*/%<>=.") and after:
            name = found[0].strip("`")
            if name.lower() not in CONSTANTS:
                yield name


def name_of(text: str) -> str:
    """Returns the name of an aggregate's field."""
    found = NAMED.fullmatch(text)
    return found[2] if found is not None else re.sub(r"\W+", "_", text).strip("_").lower()


def check_target(to: str, fields: list[str], directory: Path | None) -> None:
    try:
        with queueduct.watch(to, directory=directory) as watch:
            kind, item, is_shut_down = watch.kind, watch.item, watch.stats().is_shut_down
    except queueduct.QueueNotFound:
        return  # it will be created
    if kind != "events":
        raise wrong("--to", f"results go into a log (events), and {to!r} is of kind {kind}; name another queue")
    if is_shut_down:
        raise wrong("--to", f"the queue {to!r} is shut down, and takes nothing more; name another, or rm it")
    names = list(item.names or ()) if isinstance(item, np.dtype) else []
    if names != fields:
        raise wrong(
            "--to",
            f"the results have the fields {', '.join(fields)}, and the records of {to!r} "
            f"{', '.join(names) or 'none'}; name another queue",
        )


def check_writable(option: str, path: Path) -> None:
    """Looks at the directory, or at the nearest one above that is there."""
    there = path.absolute()
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        raise wrong(option, f"a directory is needed, and {there} is a file; name another")
    if not os.access(there, os.W_OK | os.X_OK):
        raise wrong(option, f"{there} is not writable for this user; name another directory")


def wrong(option: str, why: str) -> click.UsageError:
    return click.UsageError(f"{option}: {why}")
