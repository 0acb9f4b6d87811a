"""Numbers with units, as people write them: 10k items, 256M bytes, 500ms, 1k/s. Every command reads them here."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

__all__ = ["AMOUNT", "BYTES", "COUNT", "RATE", "SECONDS", "SIZE", "Duration"]

if TYPE_CHECKING:
    IntType = click.ParamType[int]
    FloatType = click.ParamType[float]
else:  # older versions of click do not say what a type's values are
    IntType = FloatType = click.ParamType

BYTE_UNITS: dict[str, Decimal] = {"": Decimal(1), "b": Decimal(1)} | {
    unit: Decimal(base) ** power
    for power, letter in enumerate("kmgt", 1)
    for unit, base in ((letter, 1024), (f"{letter}ib", 1024), (f"{letter}b", 1000))
}
COUNT_UNITS = {"": Decimal(1), "k": Decimal(10**3), "m": Decimal(10**6), "g": Decimal(10**9)}
SECONDS_OF = {"": "1", "s": "1", "ms": "1e-3", "us": "1e-6", "m": "60", "min": "60", "h": "3600", "d": "86400"}
TIME_UNITS = {unit: Decimal(seconds) for unit, seconds in SECONDS_OF.items()}
NUMBER = re.compile(r"\s*([0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?)\s*([a-zA-Z]*)\s*")
LARGEST = 2**63


def scaled(text: str, units: dict[str, Decimal]) -> Decimal | None:
    """Returns a number with a unit, exactly, or None if it is none."""
    found = NUMBER.fullmatch(text)
    if found is None or found[2].lower() not in units:
        return None
    return Decimal(found[1].replace("_", "")) * units[found[2].lower()]


class Scaled(IntType):
    """A whole number with a unit."""

    def __init__(self, name: str, units: dict[str, Decimal], example: str, *, least: int = 0) -> None:
        self.name = name
        self.units = units
        self.example = example
        self.least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        number = scaled(value, self.units)
        if number is None or number >= LARGEST or number != int(number):
            self.fail(f"{value!r} is no whole number; {self.example} are", param, ctx)
        if number < self.least:
            self.fail(f"{value!r} is less than {self.least}", param, ctx)
        return int(number)


class Duration(FloatType):
    """A time in seconds, of at least ``least`` and at most ``most``."""

    name = "seconds"

    def __init__(self, least: float = 0.0, most: float = math.inf) -> None:
        self.least = least
        self.most = most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)
        number = scaled(value, TIME_UNITS)
        if number is None or number >= LARGEST:
            self.fail(f"{value!r} is no time; 5, 0.5, 500ms, 2m and 1h are", param, ctx)
        seconds = float(number)
        if not self.least <= seconds <= self.most:
            span = f"at least {self.least:g} s" if math.isinf(self.most) else f"{self.least:g} s to {self.most:g} s"
            self.fail(f"{value!r} is out of its range, {span}", param, ctx)
        return seconds


class Rate(FloatType):
    name = "rate"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        number_text, slash, unit = str(value).partition("/")
        number = scaled(number_text, COUNT_UNITS)
        seconds = TIME_UNITS.get(unit.strip().lower()) if slash else Decimal(1)
        if not number or number >= LARGEST or seconds is None or (slash and not unit.strip()):
            self.fail(f"{value!r} is no rate; 1k/s, 250/s and 10/m are", param, ctx)
        return float(number / seconds)


SIZES, COUNTS = "4096, 64k, 256M (256 MiB) and 1GB (a billion)", "100, 10k and 2.5M"
BYTES, SIZE = Scaled("bytes", BYTE_UNITS, SIZES), Scaled("bytes", BYTE_UNITS, SIZES, least=1)
AMOUNT, COUNT = Scaled("number", COUNT_UNITS, COUNTS), Scaled("number", COUNT_UNITS, COUNTS, least=1)
SECONDS, RATE = Duration(), Rate()
