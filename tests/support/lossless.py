"""An overwriting queue of which nobody asks that it overwrites: then it keeps the contract of every other queue."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from typing import Any

from queueduct import OverwritingQueue


class Lossless(OverwritingQueue):
    """Puts wait for room unless told otherwise."""

    def put(self, item: Any, block: bool = True, timeout: float | None = None, *, overwrite: bool = False) -> None:
        super().put(item, block, timeout, overwrite=overwrite)

    def put_nowait(self, item: Any, *, overwrite: bool = False) -> None:
        super().put_nowait(item, overwrite=overwrite)

    def aput(self, item: Any, timeout: float | None = None, *, overwrite: bool = False) -> Coroutine[Any, Any, None]:
        return super().aput(item, timeout, overwrite=overwrite)

    def aput_many(
        self, items: Iterable[Any], timeout: float | None = None, *, overwrite: bool = False
    ) -> Coroutine[Any, Any, int]:
        return super().aput_many(items, timeout, overwrite=overwrite)

    def try_put(self, item: Any, *, overwrite: bool = False) -> bool:
        return super().try_put(item, overwrite=overwrite)

    def put_many(
        self, items: Iterable[Any], block: bool = True, timeout: float | None = None, *, overwrite: bool = False
    ) -> int:
        return super().put_many(items, block, timeout, overwrite=overwrite)
