"""The types of items: bytes, a numpy record, or a Python object. The only module that pickles.

A segment's header has the item type as text, so that every opener of the queue gets the same one. ``object`` means
pickle, and unpickling runs code: a named queue uses it only if its creator asked for it, and an opener can refuse it.
"""

from __future__ import annotations

import ast
import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np

from queueduct.errors import CorruptSegment
from queueduct.native import _layout

__all__ = ["ItemType", "decode_object", "encode_object", "is_its_own"]

BYTES, RECORD, OBJECT = 1, 2, 3
DEFAULT_SLOT_BYTES = {BYTES: 64, OBJECT: 256}


@dataclass(frozen=True)
class ItemType:
    """The type of a queue's items: its kind, its dtype if it has one, and its text in the header."""

    kind: int
    dtype: np.dtype[Any] | None
    text: bytes

    @property
    def varies(self) -> bool:
        """Returns true if items vary in length."""
        return self.kind != RECORD

    @property
    def spec(self) -> object:
        """The type as a user writes it: ``bytes``, ``object`` or the dtype."""
        if self.kind == RECORD:
            return self.dtype
        return bytes if self.kind == BYTES else object

    def slot_bytes(self, asked: int | None) -> int:
        """Returns the size of a slot: ``asked``, or a default that suits the items."""
        if self.dtype is None:
            return DEFAULT_SLOT_BYTES[self.kind] if asked is None else asked
        if asked is not None and asked != self.dtype.itemsize:
            raise ValueError(
                f"slot_bytes of records is the dtype's itemsize: slot_bytes={asked}, "
                f"itemsize={self.dtype.itemsize}; leave it out"
            )
        return self.dtype.itemsize

    def check_pickle(self, name: str | None, allow_pickle: bool) -> None:
        """Raises if items are pickled objects and the opener refuses these."""
        if self.kind == OBJECT and not allow_pickle:
            raise ValueError(
                f"the queue {name!r} carries pickled objects, and unpickling runs code: "
                "open it with allow_pickle=True if you trust its producers"
            )

    @classmethod
    def of(cls, spec: Any) -> ItemType:
        """Returns the item type of ``bytes``, ``object`` or anything that numpy takes for a dtype; None means bytes."""
        if spec is None or spec is bytes:
            return cls(BYTES, None, b"bytes")
        if spec is object:
            return cls(OBJECT, None, b"object")
        if spec is str or isinstance(spec, (bytes, bytearray)):
            raise TypeError(f"item must be bytes, object or a numpy dtype: item={spec!r}")
        try:
            dtype = np.dtype(spec)
        except (TypeError, ValueError) as error:
            raise TypeError(f"item must be bytes, object or a numpy dtype: item={spec!r}") from error
        check_record(dtype)
        text = repr(describe(dtype)).encode()
        dtype = restore(describe(dtype))  # as an opener gets it
        if len(text) > _layout.ITEM_TEXT_LIMIT:
            raise ValueError(
                f"the dtype's description is too long: {len(text)} bytes, "
                f"the limit is {_layout.ITEM_TEXT_LIMIT}; use fewer or shorter field names"
            )
        return cls(RECORD, dtype, text)

    @classmethod
    def from_header(cls, kind: int, text: bytes) -> ItemType:
        """Returns the item type that a header describes. Only literals are read from its text: no code runs."""
        if kind in (BYTES, OBJECT):
            expected = cls.of(bytes if kind == BYTES else object)
            if text != expected.text:
                raise CorruptSegment(f"item_text must be {expected.text!r} for item_kind={kind}: {text[:80]!r}")
            return expected
        if kind != RECORD:
            raise CorruptSegment(f"item_kind must be 1 (bytes), 2 (record) or 3 (object): item_kind={kind}")
        try:
            dtype = restore(ast.literal_eval(text.decode()))
            check_record(dtype)
        except Exception as error:  # any program may have written the text: the parser and numpy may raise anything
            raise CorruptSegment(f"item_text is not a dtype: {text[:80]!r}") from error
        return cls(RECORD, dtype, text)


def check_record(dtype: np.dtype[Any]) -> None:
    """Refuses a dtype that has no meaning outside this process, or no size."""
    if dtype.hasobject:
        name = first_object_field(dtype)
        where = f"field {name!r}" if name else "the dtype"
        raise TypeError(f"{where} holds Python objects, which cannot be shared as records; use item=object")
    if dtype.itemsize == 0:
        raise ValueError(f"a record needs at least one byte: item={dtype!r}")


def first_object_field(dtype: np.dtype[Any], prefix: str = "") -> str:
    """Returns the path of the first field that holds objects."""
    if dtype.subdtype is not None:
        return first_object_field(dtype.subdtype[0], prefix)
    for name in dtype.names or ():
        field = dtype[name]
        if field.hasobject:
            return first_object_field(field, f"{prefix}{name}.") or f"{prefix}{name}"
    return prefix.rstrip(".")


def describe(dtype: np.dtype[Any]) -> object:
    """Returns a dtype as nested literals: exact in offsets, sizes, byte order, titles and sub-arrays."""
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        while (inner := base.subdtype) is not None:  # arrays of arrays are arrays of more dimensions
            base, shape = inner[0], shape + inner[1]
        return ("array", describe(base), shape)
    if dtype.names is None:
        return dtype.str
    fields: dict[str, Any] = dict(dtype.fields or {})
    return ("record", [describe_field(name, *fields[name]) for name in dtype.names], dtype.itemsize)


def describe_field(name: str, dtype: np.dtype[Any], offset: int, title: object = None) -> tuple[object, ...]:
    return (name, describe(dtype), offset, title) if isinstance(title, str) else (name, describe(dtype), offset)


def restore(described: object) -> np.dtype[Any]:
    """Returns the dtype of a description. Raises some exception if it is none."""
    if isinstance(described, str):
        return np.dtype(described)
    if isinstance(described, tuple) and len(described) == 3:
        tag, inner, size = described
        if tag == "array":
            return np.dtype((restore(inner), tuple(int(n) for n in size)))
        if tag == "record":
            return np.dtype(
                {
                    "names": [field[0] for field in inner],
                    "formats": [restore(field[1]) for field in inner],
                    "offsets": [int(field[2]) for field in inner],
                    "titles": [field[3] if len(field) > 3 else None for field in inner],
                    "itemsize": int(size),
                }
            )
    raise ValueError(f"not a dtype: {described!r}")


def encode_object(item: object) -> bytes:
    """Returns an object as bytes for another process."""
    return pickle.dumps(item, protocol=5)


def decode_object(data: bytes) -> Any:
    """Returns the object that encode_object() was given."""
    return pickle.loads(data)


def is_its_own(error: BaseException, data: bytes) -> bool:
    """Returns true if decode_object() failed because of the item. If not, it was interrupted: the item is intact.

    An item's own error comes each time. An exception of a signal handler, or from another thread, does not; and after a
    lack of memory or stack another attempt may succeed.
    """
    if not isinstance(error, Exception) or isinstance(error, (MemoryError, RecursionError)) or is_from_handler(error):
        return False
    try:
        decode_object(data)
    except Exception as again:
        return not is_from_handler(again)
    return False


def is_from_handler(error: BaseException) -> bool:
    """Returns true if a signal handler, or a function it called, raised it: a handler gets the interrupted frame."""
    trace = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        given = [part for value in frame.f_locals.values() for part in (value if type(value) is tuple else (value,))]
        if frame.f_back is not None and any(part is frame.f_back for part in given):
            return True
        trace = trace.tb_next
    return False
