"""Whether a value was put twice is told by ranges of values."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from queueduct.verification.check.unique_values import MOST_RANGES, meetings, ranges_of, repeated


def test_numbers_in_turn_are_few_ranges_that_never_meet():
    buckets = [np.array([worker << 48 | n for worker in range(8) for n in range(k, k + 100)]) for k in (0, 100, 200)]
    ranges = [ranges_of(values) for values in buckets]
    assert [len(each) for each in ranges] == [8, 8, 8]
    assert meetings([pair for each in ranges for pair in each]) == []


def test_the_least_and_the_greatest_number_are_two_ranges():
    ends = (-(1 << 63), (1 << 63) - 1)
    assert ranges_of(np.array(ends)) == [(ends[0], ends[0]), (ends[1], ends[1])]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("most", [50, 5000, 1 << 62])
def test_a_value_that_is_put_twice_is_where_ranges_meet(seed, most):
    chance = random.Random(seed)
    values = [chance.randint(-most, most) for _ in range(2000)]
    values.append(chance.choice(values))
    chance.shuffle(values)
    parts = [np.array(values[start : start + 500]) for start in range(0, len(values), 500)]
    ranges = [ranges_of(part) for part in parts]
    assert all(len(each) <= MOST_RANGES + 1 for each in ranges)
    found = meetings([pair for each in ranges for pair in each])
    doubled = {value for value, number in Counter(values).items() if number > 1}
    assert any(first <= value <= last for first, last in found for value in doubled)


@pytest.mark.parametrize("seed", range(20))
def test_a_value_that_two_buckets_have_is_where_ranges_meet(seed):
    chance = random.Random(seed)
    values = chance.sample(range(-5000, 5000), 2000)
    parts = [np.array(values[start : start + 500]) for start in range(0, len(values), 500)]
    parts[0][7] = parts[3][5]
    found = meetings([pair for part in parts for pair in ranges_of(part)])
    assert any(first <= parts[3][5] <= last for first, last in found)
    assert repeated(np.concatenate(parts)) == parts[3][5]
