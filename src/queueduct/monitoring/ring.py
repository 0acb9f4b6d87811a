"""A ring of samples: rows of numbers, the oldest overwritten first."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

__all__ = ["Ring"]


class Ring:
    """At most ``limit`` rows of ``width`` floats in one piece of memory. Counters are exact up to 2^53."""

    __slots__ = ("_count", "_limit", "_rows", "_width")

    def __init__(self, width: int, limit: int) -> None:
        self._width = width
        self._limit = limit
        self._rows = array("d")
        self._count = 0
        """Rows ever added."""

    def __len__(self) -> int:
        return min(self._count, self._limit)

    def add(self, row: Sequence[float]) -> None:
        """Adds a row, in place of the oldest one if the ring is full."""
        if self._count < self._limit:
            self._rows.extend(row)
        else:
            first = self._count % self._limit * self._width
            self._rows[first : first + self._width] = array("d", row)
        self._count += 1

    def value(self, number: int, column: int) -> float:
        """One value of a row; row 0 is the oldest."""
        return self._rows[(self._first + number) % self._limit * self._width + column]

    def row(self, number: int) -> array[float]:
        """One row; row 0 is the oldest, and row -1 the newest."""
        start = (self._first + number % len(self)) % self._limit * self._width
        return self._rows[start : start + self._width]

    def column(self, column: int) -> list[float]:
        """All values of a column, the oldest first."""
        values = self._rows[column :: self._width].tolist()
        split = self._first % self._limit
        return values[split:] + values[:split]

    def last_at_most(self, column: int, limit: float) -> int:
        """Returns the number of the last row with a value of at most ``limit`` in a column that only rises, or -1."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self.value(middle, column) <= limit:
                low = middle + 1
            else:
                high = middle
        return low - 1

    @property
    def _first(self) -> int:
        return self._count % self._limit if self._count > self._limit else 0
