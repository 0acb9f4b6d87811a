"""aget and aput in a forked child: the helper thread is its parent's, so the child starts its own."""

from __future__ import annotations

import pytest

from tests.edges.kinds import KINDS

WAITS = """
import asyncio, os, sys, threading
import queueduct
from tests.support.children import fork
from tests.support.deadline import until
from tests.edges.kinds import KINDS, item, number_of
kind = KINDS[sys.argv[1]]
q = kind.create("q")
taken = kind.consumer(q)

def child():
    mine = q if taken is q else q.subscribe("child", start="earliest")
    async def main():
        await q.aput(item(2), timeout=30)
        return [number_of(await mine.aget(timeout=30)) for _ in range(2)]
    asyncio.events._set_running_loop(None)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    return 0 if sorted(loop.run_until_complete(main())) == [1, 2] else 3

async def main():
    waiting = asyncio.create_task(taken.aget(timeout=60))
    while not any(thread.name == "queueduct-aio" for thread in threading.enumerate()):
        await asyncio.sleep(0.001)
    pid = fork()
    if pid == 0:
        waiting.cancel()
        other = queueduct.open("q")
        threading.Timer(0.1, other.put, [item(1)]).start()  # while the child waits
        os._exit(child())
    if taken is q:
        waiting.cancel()  # so that the child gets both
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        await asyncio.sleep(0.001)
    print(os.waitstatus_to_exitcode(status))
    if taken is not q:
        print(number_of(await waiting))
    else:
        q.put(item(3))
        print(number_of(await q.aget(timeout=30)))

asyncio.run(main())
"""


@pytest.mark.parametrize("kind", KINDS)
def test_a_child_forked_while_its_parent_awaits_an_item_awaits_its_own(kind, children):
    out = children.run(WAITS, kind).split()
    assert out[0] == "0"
    assert out[1] in ("1", "2", "3")


def test_a_child_forked_while_its_parent_awaits_room_awaits_it_as_well(children):
    out = children.run(
        """
import asyncio, os, threading
import queueduct
from tests.support.children import fork
q = queueduct.BoundedQueue.create("q", 2)
q.put(b"1")
q.put(b"2")
async def main():
    waiting = asyncio.create_task(q.aput(b"3", timeout=60))
    while not any(thread.name == "queueduct-aio" for thread in threading.enumerate()):
        await asyncio.sleep(0.001)
    pid = fork()
    if pid == 0:
        asyncio.events._set_running_loop(None)
        loop = asyncio.new_event_loop()
        threading.Timer(0.1, q.get_many, [2]).start()
        loop.run_until_complete(q.aput(b"child's", timeout=30))
        os._exit(0)
    while not os.waitpid(pid, os.WNOHANG)[0]:
        await asyncio.sleep(0.001)
    await waiting
    print(sorted(q.get_many(2)))
asyncio.run(main())
"""
    )
    assert out == """[b"3", b"child's"]\n""".replace('b"3"', "b'3'")
