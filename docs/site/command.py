"""Writes the reference of the command from click's own description of it: usage, options, examples."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

from docs.site.api import block, heading
from docs.site.stage import Stage
from queueduct.cli import COMMANDS, SUMMARIES, main

NAME = "queueduct"


def write(stage: Stage) -> None:
    """Write one page, with a section a command."""
    with click.Context(main, info_name=NAME, **main.context_settings) as context:
        parts = [heading("Commands and options"), *described(main, NAME, context, SUMMARIES)]
        for name in sorted(COMMANDS):
            command = main.get_command(context, name)
            assert command is not None
            with click.Context(command, info_name=name, parent=context) as inner:
                parts += [f".. _command-{name}:", heading(name, "-"), *described(command, f"{NAME} {name}", inner)]
    stage.write("reference/command.rst", "\n\n".join(parts) + "\n")


def described(
    command: click.Command, name: str, context: click.Context, summaries: dict[str, str] | None = None
) -> Iterator[str]:
    """Yield what a command is for, its usage, its options and its examples."""
    yield f".. program:: {name}"
    yield from prose(command.help)
    pieces = " ".join(command.collect_usage_pieces(context))
    yield literal(f"{name} {pieces}")
    for parameter in command.get_params(context):
        if record := parameter.get_help_record(context):
            yield option(parameter, record)
    if summaries:
        rows = (f"* - :ref:`{each} <command-{each}>`\n  - {summaries[each]}" for each in sorted(summaries))
        yield block(".. list-table::", "\n".join(rows))
    yield from prose(command.epilog)


def option(parameter: click.Parameter, record: tuple[str, str]) -> str:
    names, text = record
    if isinstance(parameter, click.Argument):
        return block(f".. option:: {parameter.make_metavar(click.get_current_context())}", escaped(text))
    return block(f".. option:: {names.replace('|', ' | ') if ' / ' in names else names}", escaped(text))


def prose(text: str | None) -> Iterator[str]:
    """Yield the paragraphs of a help text; what click is told not to wrap stays as it is."""
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text or "")):
        if paragraph.startswith("\b"):
            first, *lines = paragraph.lstrip("\b\n").split("\n")
            yield escaped(first) if lines else literal(first)
            if lines:
                yield literal(inspect.cleandoc("\n" + "\n".join(lines)))
        elif paragraph:
            yield escaped(paragraph)


def literal(text: str) -> str:
    return block(".. code-block:: text", text)


def escaped(text: str) -> str:
    """Return text for reStructuredText, in which some signs mean something else."""
    return re.sub(r"([\\*`|_])", r"\\\1", text)
