"""Where the workers run: left to the scheduler, or each held on a core."""

import os

PINNED = "pinned"
UNPINNED = "unpinned"


def placements(*, quick: bool) -> list[str]:
    """Return the placements to measure, one if it is to be quick; pinning needs two cores."""
    possible = [PINNED, UNPINNED] if len(os.sched_getaffinity(0)) > 1 else [UNPINNED]
    return possible[:1] if quick else possible


def take_place(placement: str, *, producing: bool, index: int) -> None:
    """Move the calling thread to its core.

    Producers share one half of the cores and consumers the other;
    with one producer and one consumer that is a core each.
    """
    if placement != PINNED:
        return
    cores = sorted(os.sched_getaffinity(0))
    half = len(cores) // 2
    mine = cores[:half] if producing else cores[half:]
    os.sched_setaffinity(0, {mine[index % len(mine)]})
