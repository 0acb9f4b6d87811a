"""Options and arguments that several commands have, with their checks and their completion."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

__all__ = ["IN", "ITEM", "QUEUE", "as_json", "complete_queues", "complete_readers", "directory_in"]

if TYPE_CHECKING:
    AnyType = click.ParamType[Any]
else:  # older versions of click do not say what a type's values are
    AnyType = click.ParamType

Decorated = TypeVar("Decorated", bound=Callable[..., Any] | click.Command)


class Item(AnyType):
    name = "type"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from queueduct.formats.item_text import item_from_text

        if not isinstance(value, str):
            return value
        try:
            return item_from_text(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


ITEM = Item()


def directory_in(context: click.Context) -> Path | None:
    """Returns the directory that was given, to the command or to the program."""
    given = context.params.get("directory")
    return given if given is not None else context.find_root().params.get("directory")


def chosen_directory(context: click.Context, option: click.Parameter, given: Path | None) -> Path | None:
    return given if given is not None else context.find_root().params.get("directory")


IN = click.option(
    "--dir",
    "--directory",
    "directory",
    type=click.Path(path_type=Path),
    callback=chosen_directory,
    help="Where the queues are; by default $QUEUEDUCT_DIR.",
)


def as_json(what: str) -> Callable[[Decorated], Decorated]:
    """The option --json."""
    return click.option("--json", "as_json", is_flag=True, help=what)


def complete_queues(context: click.Context, option: click.Parameter, typed: str) -> list[CompletionItem]:
    """Returns the queues whose names begin so. A shell that completes a word wants no error."""
    import queueduct

    with contextlib.suppress(Exception):
        found = queueduct.queues(directory=directory_in(context))
        return [CompletionItem(info.name, help=info.kind) for info in found if info.name.startswith(typed)]
    return []


def complete_readers(context: click.Context, option: click.Parameter, typed: str) -> list[CompletionItem]:
    """Returns the durable readers of the queue that the command names."""
    import queueduct

    with (
        contextlib.suppress(Exception),
        queueduct.watch(named_queue(context), directory=directory_in(context)) as watch,
    ):
        names = [reader.name for reader in watch.readers() if reader.name is not None]
        return [CompletionItem(name) for name in names if name.startswith(typed)]
    return []


def named_queue(context: click.Context) -> str:
    """Returns the queue that is named before the word that is being completed; click has not assigned it yet."""
    return str(context.params.get("name") or context.params.get("queue") or context.args[0])


QUEUE = click.argument("name", metavar="QUEUE", shell_complete=complete_queues)
