"""Whether a value was put twice is told by hash: no part and no task need see all values."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from queueduct.verification.check.unique_values import repeated, values_by_hash

ENDS = (-(1 << 63), (1 << 63) - 1)


def told(parts, hashes):
    """The values that some task finds twice."""
    carried: dict[int, list[np.ndarray]] = {}
    for part in parts:
        for task, values in values_by_hash(np.array(part, np.int64), hashes):
            carried.setdefault(task, []).append(values)
    assert all(0 <= task < hashes for task in carried)
    return [value for values in carried.values() for value in repeated(np.concatenate(values))]


@pytest.mark.parametrize("hashes", [1, 7, 64])
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("most", [50, 5000, 1 << 62])
def test_the_least_value_that_is_put_twice_is_found(seed, most, hashes):
    chance = random.Random(seed)
    values = [chance.randint(-most, most) for _ in range(2000)]
    values.append(chance.choice(values))
    chance.shuffle(values)
    parts = [values[start : start + 500] for start in range(0, len(values), 500)]
    assert min(told(parts, hashes)) == min(value for value, number in Counter(values).items() if number > 1)


@pytest.mark.parametrize("hashes", [1, 7, 64])
def test_values_that_differ_are_found_in_none(hashes):
    in_turn = [[worker << 48 | n for worker in range(8) for n in range(k, k + 100)] for k in (0, 100, 200)]
    assert told(in_turn, hashes) == []
    assert told([ENDS, (0, -1, 1)], hashes) == []
    assert told([ENDS, ENDS[:1]], hashes) == [ENDS[0]]
    assert told([[]], hashes) == []


def test_numbers_in_turn_are_spread_evenly():
    sizes = [len(values) for _, values in values_by_hash(np.arange(0, 64 * 64_000, 64), 8)]
    assert max(sizes) < 1.1 * min(sizes)


def test_a_value_that_is_there_a_million_times_is_carried_twice():
    ((_, values),) = values_by_hash(np.zeros(1_000_000, np.int64), 8)
    assert values.tolist() == [0, 0]
