"""Views of records in shared memory: arrays that know when they are no longer valid."""

from __future__ import annotations

import contextlib
from types import TracebackType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["BegunView", "ChunkView", "Session", "SlotView", "ViewSession", "slot_view"]


class Viewed(Protocol):
    """The calls of a reader that a view uses."""

    def _begin_view(self, limit: int, viewer: int, waits: bool, timeout: float | None) -> NDArray[Any]: ...
    def _end_view(self, count: int, viewer: int) -> None: ...


class Session:
    """The state that a view shares with all views that were sliced from it."""

    is_over = False

    def __init__(self, reason: str = "its chunk may be used for other items by now") -> None:
        self.reason = reason


class ChunkView(np.ndarray[Any, np.dtype[Any]]):
    """A read-only array on a chunk. After its ``with`` every use raises ValueError; copy what you want to keep."""

    _session: Session | None = None

    def __array_finalize__(self, parent: Any) -> None:
        if not self.flags.owndata:  # a copy stays valid
            self._session = getattr(parent, "_session", None)

    def _check(self) -> None:
        if self._session is not None and self._session.is_over:
            raise ValueError(
                f"this view is no longer valid: {self._session.reason}; use it inside its with block, or copy it there"
            )

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        plain = [_plain(each) for each in inputs]
        if "out" in kwargs:
            kwargs["out"] = tuple(_plain(each) for each in kwargs["out"])
        return getattr(ufunc, method)(*plain, **kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return func(*_plain(args), **_plain(kwargs))

    def __getitem__(self, key: Any) -> Any:
        self._check()
        return super().__getitem__(key)

    def __getattribute__(self, name: str) -> Any:
        if name in READING:
            super().__getattribute__("_check")()
        return super().__getattribute__(name)

    def __iter__(self) -> Any:
        self._check()
        return super().__iter__()

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return np.asarray(_plain(self)).__array__(*args, **kwargs)

    def __repr__(self) -> str:
        if self._session is not None and self._session.is_over:
            return "<queueduct view, no longer valid>"
        return super().__repr__()

    __str__ = __repr__

    def __reduce__(self) -> Any:
        return _plain(self).copy().__reduce__()

    def __copy__(self) -> Any:
        return _plain(self).copy()

    def __deepcopy__(self, memo: dict[int, Any] | None, /) -> Any:
        return _plain(self).copy()


class SlotView(ChunkView):
    """An array on a slot. After the slot was given back every use raises ValueError; copy what you want to keep."""

    def __setitem__(self, key: Any, value: Any) -> None:
        self._check()
        super().__setitem__(key, value)

    def __getattribute__(self, name: str) -> Any:
        if name in REACHING:
            super().__getattribute__("_check")()
        return super().__getattribute__(name)


def slot_view(array: NDArray[Any], session: Session) -> SlotView:
    """Returns the array as a view that is valid until the session is over."""
    view = array.view(SlotView)
    view._session = session
    return view


# Attributes that read the records without an operator.
READING = frozenset(
    {
        "all", "any", "argmax", "argmin", "argsort", "astype", "base", "choose", "clip", "compress", "copy", "cumprod",
        "cumsum", "data", "diagonal", "dot", "dump", "dumps", "flat", "flatten", "item", "max", "mean", "min",
        "nonzero", "prod", "ravel", "repeat", "reshape", "round", "searchsorted", "squeeze", "std", "sum", "swapaxes",
        "take", "tobytes", "tofile", "tolist", "trace", "transpose", "var", "view",
    }
)  # fmt: skip


# Further attributes that reach the memory of a slot, to write it or from outside numpy.
REACHING = frozenset(
    {
        "T", "__array_interface__", "__array_struct__", "__dlpack__", "byteswap", "conj", "conjugate", "ctypes", "fill",
        "getfield", "imag", "itemset", "mT", "partition", "argpartition", "ptp", "put", "real", "resize", "setfield",
        "sort", "tostring",
    }
)  # fmt: skip


def _plain(value: Any) -> Any:
    """Returns the value with plain arrays in place of views, after the check of each view."""
    if isinstance(value, ChunkView):
        value._check()
        return np.ndarray.view(value, np.ndarray)
    if isinstance(value, (list, tuple)):
        return type(value)(_plain(each) for each in value)
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return value


class ViewSession:
    """The context manager of ``with reader.view() as array``."""

    _is_entered = False

    def __init__(self, reader: Viewed, limit: int, waits: bool = False, timeout: float | None = None) -> None:
        self._reader = reader
        self._limit = limit
        self._waits = waits
        self._timeout = timeout
        self._session = Session()
        self._count = 0

    def __enter__(self) -> ChunkView:
        if self._is_entered:
            raise RuntimeError("a view is entered once: call view() again")
        self._is_entered = True
        array = self._reader._begin_view(self._limit, id(self), self._waits, self._timeout)
        self._count = len(array)
        view = array.view(ChunkView)
        view._session = self._session
        return view

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._session.is_over = True
        try:
            self._reader._end_view(0 if kind is not None else self._count, id(self))
        except Exception:
            # The records had been overwritten or truncated: that is reported, unless the block was interrupted.
            if kind is None or issubclass(kind, Exception):
                raise

    def __del__(self) -> None:
        if self._is_entered:  # it was interrupted, perhaps before the with block began
            with contextlib.suppress(Exception):  # the next call raises it again
                self._reader._end_view(0, id(self))


class BegunView:
    """A view whose records are there: ``with view as array``, once."""

    def __init__(self, session: ViewSession) -> None:
        self._array: ChunkView | None = session.__enter__()
        self._session = session

    def __enter__(self) -> ChunkView:
        array, self._array = self._array, None
        if array is None:
            raise RuntimeError("a view is entered once: call aview() again")
        return array

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._session.__exit__(kind, error, trace)
