"""Numbers as people write them: 250000, 10M, 1.5G."""

from __future__ import annotations

import click

__all__ = ["amount"]

UNITS = {"k": 10**3, "m": 10**6, "g": 10**9}


def amount(context: click.Context, option: click.Parameter, given: str | None) -> int | None:
    """A number, as in 250000, 10M or 1.5G."""
    if given is None:
        return None
    text = given.lower().replace("_", "")
    unit = UNITS.get(text[-1:], 1)
    try:
        number = float(text[:-1] if unit > 1 else text) * unit
    except ValueError:
        raise click.BadParameter(f"{given!r} is no number; 250000, 10M and 1.5G are") from None
    if not 1 <= number <= 1e15 or number != int(number):
        raise click.BadParameter(f"{given!r} is no whole number from 1 to 1e15")
    return int(number)
