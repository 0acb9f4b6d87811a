"""Options and arguments that several commands have, with their checks and their completion."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

__all__ = [
    "AMOUNT",
    "BYTES",
    "IN",
    "ITEM",
    "QUEUE",
    "RATE",
    "SECONDS",
    "as_json",
    "complete_queues",
    "complete_readers",
    "directory_in",
]

if TYPE_CHECKING:
    IntType = click.ParamType[int]
    FloatType = click.ParamType[float]
    AnyType = click.ParamType[Any]
else:  # older versions of click do not say what a type's values are
    IntType = FloatType = AnyType = click.ParamType

Decorated = TypeVar("Decorated", bound=Callable[..., Any] | click.Command)

BYTE_UNITS = {"": 1, "b": 1} | {
    unit: base**power
    for power, letter in enumerate("kmgt", 1)
    for unit, base in ((letter, 1024), (f"{letter}ib", 1024), (f"{letter}b", 1000))
}
COUNT_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
TIME_UNITS = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
NUMBER = re.compile(r"\s*([0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][0-9]+)?)\s*([a-zA-Z]*)\s*")


def scaled(text: str, units: dict[str, Any]) -> float | None:
    """Returns a number with a unit as a number, or None if it is none."""
    found = NUMBER.fullmatch(text)
    if found is None or found[2].lower() not in units:
        return None
    return float(found[1].replace("_", "")) * float(units[found[2].lower()])


class Scaled(IntType):
    """A whole number with a unit."""

    def __init__(self, name: str, units: dict[str, int], example: str) -> None:
        self.name = name
        self.units = units
        self.example = example

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        number = scaled(value, self.units)
        if number is None or number != int(number) or not 0 <= number < 2**63:
            self.fail(f"{value!r} is no whole number; {self.example} are", param, ctx)
        return int(number)


class Duration(FloatType):
    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        number = scaled(value, TIME_UNITS)
        if number is None or not math.isfinite(number):
            self.fail(f"{value!r} is no time; 5, 0.5, 500ms, 2m and 1h are", param, ctx)
        return number


class Rate(FloatType):
    name = "rate"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        number_text, slash, unit = str(value).partition("/")
        number = scaled(number_text, COUNT_UNITS)
        seconds = TIME_UNITS.get(unit.strip().lower()) if slash else 1.0
        if not number or seconds is None or (slash and not unit.strip()):
            self.fail(f"{value!r} is no rate; 1k/s, 250/s and 10/m are", param, ctx)
        return number / seconds


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


BYTES = Scaled("bytes", BYTE_UNITS, "4096, 64k, 256M (256 MiB) and 1GB (a billion)")
AMOUNT = Scaled("number", COUNT_UNITS, "100, 10k and 2.5M")
SECONDS, RATE, ITEM = Duration(), Rate(), Item()


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
    return str(context.params.get("name") or context.args[0])


QUEUE = click.argument("name", metavar="QUEUE", shell_complete=complete_queues)
