"""A bucket of positions of a queue, with its prefix maxima and suffix minima: what its conditions are made of."""

from __future__ import annotations

import numpy as np

from queueduct.verification.check.operations import EMPTY, FULL, GET, PUT, WEAK_EMPTY, WEAK_FULL, Longs, Rows
from queueduct.verification.check.positions.boundaries import Carry, Shape, bounds, own
from queueduct.verification.check.positions.extremes import Peaks, Troughs, returns, soonest_of
from queueduct.verification.check.positions.sides import Answers, Side

__all__ = ["Scanned"]


class Scanned:
    def __init__(self, rows: Rows, bucket: int, carry: Carry, shape: Shape) -> None:
        self.low, self.high = bounds(bucket, shape)
        self.span = span = self.high - self.low
        self.shape, self.carry = shape, carry
        low, high = self.low, self.high
        self.puts = Side(*own(rows, PUT, low, high), span)
        self.gets = Side(*own(rows, GET, low, high), span)
        self.empties = Answers(*own(rows, EMPTY, low, high), span, *own(rows, WEAK_EMPTY, low, high))
        fulls = Answers(*own(rows, FULL, low, high), span, *own(rows, WEAK_FULL, low, high))
        self.put_peaks = Peaks(self.puts.invoke, carry.put_invoke)
        self.get_peaks = Peaks(self.gets.invoke, carry.get_invoke)
        self.empty_peaks = Peaks(self.empties.invoke, carry.empty_invoke)
        self.full_peaks = Peaks(fulls.invoke, carry.full_invoke)
        self.put_troughs = Troughs(self.puts.ret, carry.put_return)
        self.get_troughs = Troughs(self.gets.ret, carry.get_return)
        self.empty_troughs = Troughs(self.empties.any_ret, carry.empty_return)
        self.full_troughs = Troughs(fulls.any_ret, carry.full_return)
        if shape.capacity is not None:
            self.shift(rows, shape.capacity)

    def shift(self, rows: Rows, capacity: int) -> None:
        """Gets and full answers where they make room: C positions later."""
        low, high = self.low - capacity, self.high - capacity
        self.room = Side(*own(rows, GET, low, high), self.span)
        self.fulls = Answers(*own(rows, FULL, low, high), self.span, *own(rows, WEAK_FULL, low, high))
        self.room_peaks = Peaks(self.room.invoke, self.carry.shifted_get_invoke)
        self.shifted_full_peaks = Peaks(self.fulls.invoke, self.carry.shifted_full_invoke)
        self.room_troughs = Troughs(self.room.ret, self.carry.shifted_get_return)
        self.shifted_full_troughs = Troughs(self.fulls.any_ret, self.carry.shifted_full_return)
        self.shifted_weak_troughs = self.soonest(*own(rows, WEAK_EMPTY, low, high), self.carry.shifted_weak_return)
        self.shifted_empty_troughs = self.soonest(*own(rows, EMPTY, low, high), self.carry.shifted_empty_return)
        positions = np.where(self.empties.is_there, np.arange(self.low, self.high), -1)
        self.last_empty = Peaks(positions, self.carry.last_empty)

    def soonest(self, rows: Rows, keys: Longs, carry: int) -> Troughs:
        return Troughs(returns(rows.ret, soonest_of(keys, rows.ret, self.span)), carry)

    def followers_of_empties(self) -> Longs:
        """At a position: the soonest return of what must follow a get before an empty answer there."""
        if self.shape.capacity is None:
            return self.put_troughs.onwards
        return np.minimum(self.put_troughs.onwards, self.shifted_full_troughs.after)
