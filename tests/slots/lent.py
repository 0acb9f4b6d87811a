"""What tests of slots share: frames, and where the slots are."""

from __future__ import annotations

import numpy as np

FRAME = np.dtype(("f4", (4, 6)))


def counts(q):
    stats = q.stats()
    assert stats.free + stats.loaned + stats.queued + stats.leased == stats.slots
    return stats.free, stats.loaned, stats.queued, stats.leased
