"""A ring of samples says what a list of its last rows says."""

from __future__ import annotations

import random

import pytest

from queueduct.monitoring.ring import Ring


@pytest.mark.parametrize("limit", [1, 2, 7, 64])
def test_a_ring_keeps_the_last_rows(limit):
    ring = Ring(3, limit)
    rows = []
    for number in range(3 * limit + 2):
        rows = [*rows, [float(number), number * 2.5, 1.0 - number]][-limit:]
        ring.add(rows[-1])
        assert len(ring) == len(rows)
        assert [ring.row(each).tolist() for each in range(len(ring))] == rows
        assert ring.row(-1).tolist() == rows[-1]
        assert [ring.column(column) for column in range(3)] == [list(column) for column in zip(*rows, strict=True)]
        assert ring.value(0, 1) == rows[0][1]


def test_it_finds_the_last_row_of_at_most_a_value():
    chance = random.Random(1)
    for limit in (1, 5, 16):
        ring = Ring(1, limit)
        rows: list[float] = []
        for _ in range(50):
            rows = [*rows, (rows[-1] if rows else 0) + chance.choice([0, 0, 1, 5])][-limit:]
            ring.add([rows[-1]])
            for wanted in range(int(rows[0]) - 2, int(rows[-1]) + 3):
                assert ring.last_at_most(0, wanted) == sum(value <= wanted for value in rows) - 1
