"""A lease: items that a consumer has taken but not yet released."""

from __future__ import annotations

import operator
from types import GenericAlias, TracebackType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Protocol, Self, overload

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    T_co = TypeVar("T_co", covariant=True, default=Any)
else:
    from typing import TypeVar

    T_co = TypeVar("T_co", covariant=True)

__all__ = ["Lease"]

Scalar = TypeVar("Scalar", bound=np.generic)


class Holding(Protocol):
    """The items of a lease, in the queue. If it is dropped, it gives them back."""

    def release(self, count: int) -> None:
        """Releases the first ``count`` items for good, and gives the rest back."""
        ...


if TYPE_CHECKING:

    class _Items:
        """The type of ``Lease.items``, as get_many of the queue returns them."""

        @overload
        def __get__(self, lease: Lease[NDArray[Any]], owner: object) -> Any: ...
        @overload
        def __get__(self, lease: Lease[Scalar], owner: object) -> NDArray[Scalar]: ...
        @overload
        def __get__(self, lease: Lease[T_co], owner: object) -> list[T_co]: ...
        def __get__(self, lease: Any, owner: object) -> Any: ...
        def __set__(self, lease: object, items: Any) -> None: ...


class Lease(Generic[T_co]):
    """Claimed items and their positions. The queue keeps the items until they are released.

    ``with q.lease(1000) as lease:`` releases them all at the end of the block. An exception gives them back, and so
    does the death of the process, at any instruction: then another consumer gets them, at the same positions, perhaps
    after items that were put later. So an item may be processed twice; a consumer that must not do so remembers
    positions.

    ``deliveries`` says for each item how often it has been delivered, this time included: 1 at first. A holder that
    gave the item back counts, and one that died. In a bounded or growing queue the number is exact up to 16,384, and
    beyond at least 8,193; in an overwriting queue it is exact up to 4,096, and then stays there; slots are exact.

    >>> q = queueduct.BoundedQueue.create(None)
    >>> q.put_many([b"a", b"b"])
    2
    >>> with q.lease(100) as lease:
    ...     print(lease.items, lease.positions, lease.deliveries)
    [b'a', b'b'] [0 1] [1 1]
    """

    __class_getitem__: Any = classmethod(GenericAlias)  # as that of the queues

    if TYPE_CHECKING:
        items = _Items()

    _holding: Holding | None = None  # None when the lease is over: the thread that ends it removes it, in one step

    def __init__(
        self,
        items: Any,
        positions: NDArray[np.int64],
        holding: Holding,
        name: str,
        *,
        is_redelivered: bool,
        deliveries: NDArray[np.int64],
    ) -> None:
        self.items = items
        self.positions = positions
        self.is_redelivered = is_redelivered
        self.deliveries = deliveries
        self._holding = holding
        self._name = name

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def is_held(self) -> bool:
        """True if the lease was neither released nor given back."""
        return self._holding is not None

    def release(self, count: int | None = None) -> None:
        """Release the first ``count`` items, or all: they are never delivered again. Give the rest back.

        >>> q = queueduct.BoundedQueue.create(None)
        >>> q.put_many([b"a", b"b"])
        2
        >>> q.lease(100).release(1)
        >>> q.get()
        b'b'
        """
        if isinstance(count, bool) or not (count is None or hasattr(type(count), "__index__")):
            raise TypeError(f"count must be an int or None: count={count!r}")
        try:
            chosen = len(self) if count is None else int.__index__(operator.index(count))  # before anything is released
        except TypeError as error:  # an array, say
            raise TypeError(f"count must be an int or None: count={count!r}") from error
        if not 0 <= chosen <= len(self):
            raise ValueError(f"count must be between 0 and the lease's {len(self)} items: count={count}")
        holding: Holding | None = self.__dict__.pop("_holding", None)
        if holding is None:
            self._raise_over()
        holding.release(chosen)

    def give_back(self) -> None:
        """Give all items back, to the next consumer that asks.

        >>> q = queueduct.BoundedQueue.create(None)
        >>> q.put_many([b"a", b"b"])
        2
        >>> q.lease(100).give_back()
        >>> q.lease(100).is_redelivered
        True
        """
        self.release(0)

    def _raise_over(self) -> NoReturn:
        raise ValueError(f"this lease of the queue {self._name!r} is over: take another one")

    def __enter__(self) -> Self:
        if self._holding is None:
            self._raise_over()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._holding is not None:
            self.release(None if kind is None else 0)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a lease cannot be pickled: it belongs to one process; pickle lease.items and lease.positions, "
            "and release it here"
        )

    def __repr__(self) -> str:
        state = "" if self.is_held else ", over"
        again = ", redelivered" if self.is_redelivered else ""
        return f"<queueduct.Lease of {self._name!r}: {len(self)} items{again}{state}>"
