"""Frames of a SlotQueue for PyTorch: a dataset for a DataLoader. ``frames`` does the same for numpy, without torch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from queueduct.errors import ShutDown
from queueduct.segments.names import Directory
from queueduct.slots import SlotQueue

if TYPE_CHECKING:

    class IterableDataset: ...
else:
    try:
        from torch.utils.data import IterableDataset
    except ImportError:  # SlotDataset says so when it is made
        IterableDataset = object

__all__ = ["SlotDataset", "frames"]


def frames(
    name: str, *, directory: Directory = None, items: int | None = None, timeout: float | None = None
) -> Iterator[Any]:
    """Takes items of the SlotQueue of that name, each copied once out of its slot, until the queue is shut down.

    Ends after ``items`` items, if that is given. Raises Empty if none comes in ``timeout`` seconds. An item of bytes
    becomes an array of u1.

    >>> import queueduct.torch
    >>> q = queueduct.SlotQueue.create("frames", item=np.dtype(("f4", 3)))
    >>> q.put(np.ones(3, "f4"))
    >>> [float(frame.sum()) for frame in queueduct.torch.frames("frames", items=1)]
    [3.0]
    >>> q.unlink()
    """
    check_items(items)
    with SlotQueue.open(name, directory=directory, allow_pickle=False) as queue:
        taken = 0
        while items is None or taken < items:
            try:
                slot = queue.take(timeout)
            except ShutDown:
                return
            with slot:
                frame = np.frombuffer(bytearray(slot.view), np.uint8) if queue.item is bytes else slot.copy()
            taken += 1
            yield frame


def check_items(items: object) -> None:
    if items is not None and (isinstance(items, bool) or not isinstance(items, int) or items < 0):
        raise ValueError(f"items must be a number that is not negative, or None: items={items!r}")


class SlotDataset(IterableDataset):
    """The items of the SlotQueue of that name as tensors, for ``torch.utils.data.DataLoader``.

    All workers of a loader, and other processes, share the queue: each item goes to one of them. A pass ends when the
    queue is shut down and empty, or after ``items`` items, of which each worker gets its share. It raises Empty if no
    item comes in ``timeout`` seconds. A record becomes a dict of tensors.

    >>> import torch, queueduct.torch
    >>> q = queueduct.SlotQueue.create("frames", item=np.dtype(("f4", 3)))
    >>> q.put(np.ones(3, "f4"))
    >>> [frame.shape for frame in queueduct.torch.SlotDataset("frames", items=1)]
    [torch.Size([3])]
    >>> q.unlink()
    """

    def __init__(
        self, name: str, *, directory: Directory = None, items: int | None = None, timeout: float | None = None
    ) -> None:
        if IterableDataset is object:
            raise ImportError("SlotDataset needs torch, which is not installed: pip install torch", name="torch")
        check_items(items)
        with SlotQueue.open(name, directory=directory, allow_pickle=False) as queue:
            check_tensors(queue.item)
        super().__init__()
        self.name = name
        self.directory = directory
        self.items = items
        self.timeout = timeout

    def __iter__(self) -> Iterator[Any]:
        from torch.utils.data import get_worker_info

        worker = get_worker_info()
        items = self.items if worker is None else share(self.items, worker.id, worker.num_workers)
        for frame in frames(self.name, directory=self.directory, items=items, timeout=self.timeout):
            yield tensors(frame)


def share(items: int | None, worker: int, workers: int) -> int | None:
    """Returns how many of the items this worker takes: they add up to all."""
    return None if items is None else items // workers + (worker < items % workers)


def check_tensors(item: Any) -> None:
    """Raises if torch has no tensor for such items; names the field."""
    if item is bytes:
        return
    for name in item.names or ("",):
        dtype = (item[name] if name else item).base
        if dtype.kind not in "biufc" or dtype.itemsize > 16 or (dtype.kind == "f" and dtype.itemsize > 8):
            what = f"the field {name!r}" if name else "the item"
            raise TypeError(f"torch has no tensor for {what}: {dtype}; use numbers or bool, or queueduct.torch.frames")


def tensors(frame: Any) -> Any:
    from torch import from_numpy

    names = frame.dtype.names
    if names is None:
        return from_numpy(native(np.asarray(frame)))
    return {name: from_numpy(native(np.asarray(frame[name]))) for name in names}


def native(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Returns the array in the byte order and layout that torch takes; as it is, if it has these."""
    return np.require(array, array.dtype.newbyteorder("="), ["C", "W"])
