"""The calls for asyncio."""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

from queueduct import BoundedQueue, EventQueue, Lease, LoanedSlot, OverwritingQueue, SlotQueue, TakenSlot


async def of_objects(q: BoundedQueue[str]) -> None:
    assert_type(await q.aget(), str)
    assert_type(await q.aget_many(10), list[str])
    assert_type(await q.alease(10), Lease[str])
    async with q.alease(10) as lease:
        assert_type(lease, Lease[str])
        assert_type(lease.items, list[str])
    async for line in q:
        assert_type(line, str)
    await q.aput("line")
    await q.aput(3)  # error: arg-type
    assert_type(await q.aput_many(["line"]), int)
    await q.aput_many([3])  # error: list-item


async def of_bytes(q: BoundedQueue[bytes]) -> None:
    await q.aput(memoryview(b"line"))
    await q.aput("line")  # error: call-overload


async def of_records(q: BoundedQueue[np.void], log: EventQueue[np.void]) -> None:
    assert_type(await q.aget_many(10), NDArray[np.void])
    assert_type(await log.subscribe().aget_many(10), NDArray[np.void])
    await q.aput((b"ACME", 101.5))
    async with log.subscribe().aview() as array:
        assert_type(array["price"], Any)


async def of_slots(q: SlotQueue[bytes], prices: OverwritingQueue[float]) -> None:
    async with q.aloan() as filled:
        assert_type(filled, LoanedSlot)
    async with q.atake() as slot:
        assert_type(slot, TakenSlot[bytes])
    assert_type(await prices.alatest(), tuple[float, int])
    async for price in prices.readings():
        assert_type(price, float)
    await prices.aput("price")  # error: arg-type
