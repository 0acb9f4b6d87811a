"""The type of an item as a text for people, and back: ``sym:S8, px:f8, ts:M8[us]``.

::

    bytes, object           items of any bytes; pickled Python objects
    f8                      a number; any type that numpy has a name for
    (480,640)f4             an array of this shape
    sym:S8, px:f8           a record: the fields, with their types
    at:{x:f4, y:f4}, n:i4   a record in a record
    path:(3){x:f4, y:f4}    an array of records
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

__all__ = ["item_from_text", "item_text"]

PLAIN_NAME = re.compile(r"[^\s:,(){}\[\]'\"][^:,(){}\[\]'\"]*")
SHAPE = re.compile(r"\(([0-9, ]+)\)\s*")
EXAMPLE = "'sym:S8, px:f8, ts:M8[us]'"


def item_from_text(text: str) -> Any:
    """Returns bytes, object or a dtype. Raises ValueError, which names the part that is none."""
    plain = text.strip()
    if plain in ("bytes", "object"):
        return bytes if plain == "bytes" else object
    if not plain:
        raise ValueError(f"an item needs a type: {text!r}; write bytes, object, a type of numpy, or {EXAMPLE}")
    return record(plain) if is_record(plain) else one_type(plain)


def is_record(text: str) -> bool:
    return len(split(text, ":")) > 1 or len(split(text, ",")) > 1


def record(text: str) -> np.dtype[Any]:
    fields = []
    parts = split(text, ",")
    if len(parts) > 1 and not parts[-1].strip():
        parts.pop()  # a comma behind the last field, as in a tuple
    for part in parts:
        name, *kind = split(part, ":")
        if len(kind) != 1 or not PLAIN_NAME.fullmatch(name.strip()):
            raise ValueError(f"a field is a name, a colon and a type: {part.strip()!r}; write {EXAMPLE}")
        fields.append((name.strip(), one_type(kind[0].strip())))
    names = [name for name, _ in fields]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"each field needs a name of its own: {twice!r} comes twice; rename one")
    return np.dtype(fields)


def one_type(text: str) -> np.dtype[Any]:
    shape = SHAPE.match(text)
    if shape is not None:
        sizes = tuple(int(size) for size in shape[1].split(",") if size.strip())
        return np.dtype((one_type(text[shape.end() :].strip()), sizes))
    if text.startswith("{") and text.endswith("}"):
        return record(text[1:-1])
    try:
        found = np.dtype(text)
    except (TypeError, ValueError, SyntaxError):
        found = None
    if found is None or found.names is not None:
        raise ValueError(
            f"numpy has no type of this name: {text!r}; it has f8, i4, u1, bool, S8 (8 bytes), U8 (8 characters), "
            f"M8[us] (a time), m8[us] (a span); a record is {EXAMPLE}"
        )
    return found


def split(text: str, separator: str) -> list[str]:
    """Splits at the separators that are in no brackets."""
    parts, depth = [""], 0
    for one in text:
        depth += (one in "({[") - (one in ")}]")
        if one == separator and depth == 0:
            parts.append("")
        else:
            parts[-1] += one
    if depth != 0:
        raise ValueError(f"each bracket needs its other half: {text!r}")
    return parts


def item_text(item: Any) -> str:
    """Returns the text that item_from_text takes; numpy's own for a dtype with gaps, titles or odd names."""
    if item is bytes or item is object:
        return str(item.__name__)
    dtype = np.dtype(item)
    text = text_of(dtype)[1:-1] if dtype.names is not None and dtype.subdtype is None else text_of(dtype)
    try:
        is_same = item_from_text(text) == dtype
    except ValueError:
        is_same = False
    return text if is_same else str(dtype)


def text_of(dtype: np.dtype[Any]) -> str:
    if dtype.subdtype is not None:
        return f"({','.join(map(str, dtype.shape))}){text_of(dtype.base)}"
    if dtype.names is not None:
        return "{" + ", ".join(f"{name}:{text_of(dtype[name])}" for name in dtype.names) + "}"
    plain = dtype.str.lstrip("|" if dtype.str[0] == "|" else "=")
    return plain[1:] if dtype.isnative and plain[0] in "<>" else plain
