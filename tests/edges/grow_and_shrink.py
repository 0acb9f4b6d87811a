"""What processes of several campaigns do: queues that grow and shrink, again and again."""

GROW_AND_SHRINK = """
import sys, queueduct
max_bytes = int(sys.argv[1]) or None
for item, of in ((bytes, lambda n: b"%d" % n), ("<u8", lambda n: n), (object, lambda n: ("an object", n))):
    q = queueduct.GrowingQueue.create("q", item=item, max_bytes=max_bytes)
    n = 0
    for round_number in range(4):
        first = n
        while n - first < 6000:
            try:
                q.put_nowait(of(n))
            except queueduct.Full:
                break
            n += 1
        assert n - first >= 500, (item, n - first)
        assert max_bytes is None or q.stats().resident_bytes <= max_bytes, q.stats()
        for i in range(first, n):
            got = q.get_nowait()
            assert got == of(i), (item, round_number, got, i)
        for _ in range(5000):
            q.put_nowait(of(n))
            assert q.get_nowait() == of(n), (item, round_number, n)
            n += 1
        assert max_bytes is None or q.stats().resident_bytes <= max_bytes, q.stats()
    assert q.stats().shrunk >= 2, q.stats()
    q.unlink()
    q.close()
print("fine")
"""

GROW_AND_SHRINK_LOCALLY = """
import random, queueduct
q = queueduct.GrowingQueue()
n = 0
for round_number in range(6):
    first = n
    for _ in range(20000):
        q.put_nowait(n)
        n += 1
    for i in range(first, n):
        assert q.get_nowait() == i
    for _ in range(5000):
        q.put_nowait(n)
        assert q.get_nowait() == n
        n += 1
assert q.stats().shrunk >= 5
for seed in range(6):
    chance = random.Random(seed)
    chunk_bytes, first_items = chance.choice([1 << 13, 3 << 12, 1 << 16]), chance.choice([4, 300])
    log = queueduct.EventQueue(max_bytes=1 << 22, chunk_bytes=chunk_bytes, first_items=first_items)
    fast, slow = log.subscribe(), log.subscribe()
    n = 0
    for _ in range(15):
        count = chance.randrange(1, 3000)
        log.put_many([("item", i) for i in range(n, n + count)])
        assert [fast.get_nowait() for _ in range(count)] == [("item", i) for i in range(n, n + count)]
        n += count
        while slow.lag > chance.randrange(1, 3000):
            slow.get_nowait()
        assert [item[1] for item in log.read(log.earliest, log.end)] == list(range(log.earliest, log.end))
    log.close()
print("fine")
"""
