"""Values of a dtype as JSON has them, and back. Both ways exact: what comes back is what was there, to the last bit.

==============  ======================================================================================
numpy           JSON
==============  ======================================================================================
bool, integers  true and false; a number
f2 f4 f8        the shortest number that comes back equal; "NaN", "Infinity", "-Infinity"
M8              text as in "2026-01-05T09:30:00.000001"; null is NaT
m8              how many of its units; null is NaT
bytes, S, V     text if it is UTF-8, else {"base64": "…"}
U               text
record          an object; it is read from a list of all its fields, too
sub-array       a list
==============  ======================================================================================

What is read is not checked here against its field: the queue does that, and refuses what would change.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from queueduct.formats.rows import no_such_type

__all__ = ["bytes_from", "bytes_to_json", "check_type", "counted", "from_json", "time_from", "to_json"]

NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
KINDS = "biufMmSUV"


def check_type(dtype: np.dtype[Any], path: str, format_name: str) -> None:
    """Raises TypeError for a type that has no value in JSON; the error names the field."""
    base = dtype.base
    if base.names is not None:
        for name in base.names:
            check_type(base[name], f"{path}.{name}" if path else name, format_name)
        return
    has_unit = base.kind not in "Mm" or np.datetime_data(base)[0] != "generic"
    if base.kind not in KINDS or (base.kind == "f" and base.itemsize > 8) or not has_unit:
        raise no_such_type(path, base, format_name)


def to_json(values: np.ndarray[Any, Any]) -> list[Any]:
    """Returns what json.dumps takes for each of the values; the dtype was checked by check_type."""
    if values.ndim > 1:
        length = values.shape[1]
        flat = to_json(values.reshape((len(values) * length, *values.shape[2:])))
        return [flat[at : at + length] for at in range(0, len(flat), length)] if length else [[] for _ in values]
    if values.dtype.names is not None:
        names = values.dtype.names
        columns = [to_json(values[name]) for name in names]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    kind = values.dtype.kind
    if kind == "f":
        return floats(values)
    if kind == "M":
        return times(values)
    if kind == "m":
        counts = values.astype(values.dtype.newbyteorder("=")).view(np.int64).tolist()
        return [None if gone else count for gone, count in zip(np.isnat(values).tolist(), counts, strict=True)]
    if kind in "SV":
        return [bytes_to_json(bytes(value)) for value in values.tolist()]
    listed: list[Any] = values.tolist()
    return listed


def floats(values: np.ndarray[Any, Any]) -> list[Any]:
    """Returns the shortest numbers that come back equal; of 4 bytes 0.1 and not 0.10000000149011612."""
    found: list[Any] = values.tolist()
    if values.dtype.itemsize < 8:
        short = [float(text) for text in values.astype(values.dtype.newbyteorder("=")).astype("U").tolist()]
        with np.errstate(over="ignore"):
            is_same = np.array(short, "f8").astype(values.dtype) == values
        found = [one if same else other for one, same, other in zip(short, is_same.tolist(), found, strict=True)]
    if not np.isfinite(values).all():
        found = [value if math.isfinite(value) else not_finite(value) for value in found]
    return found


def not_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def times(values: np.ndarray[Any, Any]) -> list[Any]:
    """Returns texts; for years of more than four digits, or before 0, how many of its units it is."""
    native = values.astype(values.dtype.newbyteorder("="))
    texts: list[Any] = np.datetime_as_string(native).tolist()
    counts = native.view(np.int64).tolist()
    gone = np.isnat(native).tolist()
    return [
        None if missing else text if text[:4].isdigit() and text[4:5] in ("", "-") else count
        for text, count, missing in zip(texts, counts, gone, strict=True)
    ]


def bytes_to_json(value: bytes) -> Any:
    """Returns text if it is UTF-8, else an object with the base64 of it."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}


def bytes_from(value: Any) -> Any:
    """Returns the bytes that bytes_to_json was given. Raises ValueError for what it never returns."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and value.keys() == {"base64"} and isinstance(value["base64"], str):
        try:
            return base64.b64decode(value["base64"], validate=True)
        except binascii.Error as error:
            raise ValueError(f"it is no base64: {value['base64'][:40]!r} ({error})") from None
    raise ValueError(f'bytes must be text, or {{"base64": "…"}}: {value!r}')


def time_from(value: Any) -> Any:
    """Returns the time of a text, in the unit in which the text has it. None is NaT, a number is left as it is."""
    if value is None:
        return np.datetime64("NaT")
    if not isinstance(value, str):
        return value
    text = value.removesuffix("Z")  # UTC, as all times of numpy
    if "+" in text or (":" in text and "-" in text.partition("T")[2]):
        raise ValueError(f"a time must be in UTC, without a zone: {value!r}; convert it first")
    try:
        return np.datetime64(text)
    except ValueError:
        raise ValueError(f"it is no time: {value!r}; write it as 2026-01-05T09:30:00.000001") from None


def counted(dtype: np.dtype[Any], value: Any) -> Any:
    """Returns a number of units as a time or a span; a value that is none as it is."""
    if type(value) is not int or not -(2**63) < value < 2**63:
        return value
    return np.int64(value).view(dtype.newbyteorder("="))


def span_from(value: Any) -> Any:
    return np.timedelta64("NaT") if value is None else value


def float_from(value: Any) -> Any:
    return NOT_FINITE.get(value, value) if isinstance(value, str) else value


def from_json(dtype: np.dtype[Any] | None, path: str = "") -> Callable[[Any], Any]:
    """Returns the function that makes an item of what json.loads returns; None means bytes."""
    if dtype is None:
        return bytes_from
    if dtype.subdtype is not None:
        lists = list_from(from_json(dtype.base, path), len(dtype.shape), path)
        return lists if dtype.base.kind != "m" else spans_from(lists, dtype)
    if dtype.names is not None:
        inner = [(name, from_json(dtype[name], f"{path}.{name}" if path else name)) for name in dtype.names]
        return record_from(inner, path)
    convert: dict[str, Callable[[Any], Any]] = {
        "f": float_from,
        "M": lambda value: time_from(counted(dtype, value)),
        "m": lambda value: span_from(counted(dtype, value)),
        "S": bytes_from,
        "V": bytes_from,
    }
    return named(convert[dtype.kind], path) if dtype.kind in convert else lambda value: value


def named(convert: Callable[[Any], Any], path: str) -> Callable[[Any], Any]:
    """Puts the field's name into the error."""

    def converted(value: Any) -> Any:
        try:
            return convert(value)
        except ValueError as error:
            raise ValueError(f"field {path!r}: {error}" if path else str(error)) from None

    return converted


def record_from(inner: list[tuple[str, Callable[[Any], Any]]], path: str) -> Callable[[Any], Any]:
    names = [name for name, _ in inner]
    known = set(names)

    def converted(value: Any) -> Any:
        if isinstance(value, list) and len(value) == len(inner):
            return tuple(convert(one) for one, (_, convert) in zip(value, inner, strict=True))
        if not isinstance(value, dict) or value.keys() != known:
            raise ValueError(why_no_record(value, names, path))
        return tuple([convert(value[name]) for name, convert in inner])

    return converted


def why_no_record(value: Any, names: list[str], path: str) -> str:
    wanted = f"field {path!r}" if path else "a row"
    example = ", ".join(f'"{name}": …' for name in names)
    if not isinstance(value, dict):
        return f"{wanted} must be an object {{{example}}}, or a list of all its values: {str(value)[:80]!r}"
    missing = ", ".join(name for name in names if name not in value) or "none"
    unknown = ", ".join(repr(name)[1:-1] for name in value if name not in names) or "none"
    return (
        f"{wanted} must have exactly the record's fields: missing: {missing}; unknown: {unknown}; write {{{example}}}"
    )


def spans_from(lists: Callable[[Any], Any], dtype: np.dtype[Any]) -> Callable[[Any], Any]:
    """Makes spans an array at once: a list of those beyond 292,000 years comes through no other way."""

    def converted(value: Any) -> Any:
        found = lists(value)
        listed = np.array(found, object)
        if listed.shape != dtype.shape or not all(isinstance(one, np.timedelta64) for one in listed.flat):
            return found
        return np.array(found, dtype.base)

    return converted


def list_from(convert: Callable[[Any], Any], depth: int, path: str) -> Callable[[Any], Any]:
    def converted(value: Any, left: int = depth) -> Any:
        if left == 0:
            return convert(value)
        if not isinstance(value, list):
            raise ValueError(
                f"field {path!r} must be a list" if path else f"an item must be a list: {str(value)[:80]!r}"
            )
        return [converted(one, left - 1) for one in value]

    return converted
