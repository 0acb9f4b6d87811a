"""What killed operations explain in an overwriting queue: puts and gets together, in one sweep over the positions.

An item without a get was taken by a killed get, or overwritten by the put C positions behind it. In that case this
put, and every put before it, came before all gets behind the item. So the killed put that fills a gap decides which
items need a killed get. The earliest killed operation still goes to the first gap. But a killed put that names its
position may be later than one that names none, and spending a killed put may spare a killed get. So the sweep keeps
every way that no other way beats in every respect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from queueduct.verification.check.operations import NEVER, START
from queueduct.verification.check.positions.boundaries import Extent
from queueduct.verification.check.positions.bucket import Gap
from queueduct.verification.check.witnesses import Row

__all__ = ["Unexplained", "unexplained_of"]


class Way(NamedTuple):
    """One way to explain the gaps so far. Of each field, less is better."""

    latest: int = START
    """The invocation of the latest killed put that was used."""
    puts: int = 0
    """How many killed puts without a position are used."""
    gets: int = 0
    """How many killed gets without a position are used."""
    is_short: bool = False
    """True if a position after the last known put has no put."""

    def is_beaten_by(self, other: Way) -> bool:
        return all(mine >= its for mine, its in zip(self, other, strict=True))


class Unexplained(NamedTuple):
    puts: list[Gap]
    gets: list[Gap]
    taken: int
    """How many items went with killed gets of which nothing else is known."""


class Killed:
    """Killed operations of one side in the order of their invocations: by their position, and without one."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.named: dict[int, int] = {}
        self.others: list[int] = []
        for row in rows:
            if row["ticket"] is None:
                self.others.append(int(row["invoke_ns"]))
            else:
                self.named.setdefault(int(row["ticket"]), int(row["invoke_ns"]))


def unexplained_of(
    put_gaps: Sequence[Gap],
    get_gaps: Sequence[Gap],
    killed_puts: Sequence[Row],
    killed_gets: Sequence[Row],
    extent: Extent,
) -> Unexplained:
    """Killed operations come in the order of their invocations.

    ``killed_puts`` have those whose item was got: each fills the gap that has its value.
    """
    sweep = Sweep(put_gaps, killed_puts, killed_gets, extent)
    for gap in sweep.ordered([*put_gaps, *get_gaps]):
        if gap.side == "get":
            sweep.explain_get(gap)
        elif gap.witness:
            sweep.put_was_got(gap)
        elif gap.position < extent.puts_needed:
            sweep.fill_put(gap)
        else:
            sweep.extend(gap)
    return sweep.found._replace(taken=sweep.named_gets + min(way.gets for way in sweep.ways))


class Sweep:
    def __init__(
        self, put_gaps: Sequence[Gap], killed_puts: Sequence[Row], killed_gets: Sequence[Row], extent: Extent
    ) -> None:
        assert extent.capacity is not None
        self.extent, self.capacity = extent, extent.capacity
        got = {gap.value for gap in put_gaps if gap.witness}
        self.got = {row["value"]: int(row["invoke_ns"]) for row in killed_puts if row["value"] in got}
        self.puts = Killed(row for row in killed_puts if row["value"] not in got)
        self.gets = Killed(row for row in killed_gets if row["value"] is None)
        self.ways = [Way()]
        self.named_gets = 0
        self.found = Unexplained([], [], 0)

    def ordered(self, gaps: Sequence[Gap]) -> list[Gap]:
        """A missing get comes after the put that would have overwritten its item, so that this put is decided first."""
        first = self.extent.puts_needed
        last = max((self.decided_at(gap) for gap in gaps), default=START)
        most = len(self.puts.named) + len(self.puts.others)
        beyond = [Gap("put", position, NEVER, None, None) for position in range(first, min(last, first + most) + 1)]
        return sorted([*gaps, *beyond], key=lambda gap: (self.decided_at(gap), gap.side == "get"))

    def decided_at(self, gap: Gap) -> int:
        return gap.position + self.capacity if gap.side == "get" else gap.position

    def put_was_got(self, gap: Gap) -> None:
        invoke = self.got.get(gap.value, START)
        self.ways = best(way._replace(latest=max(way.latest, invoke)) for way in self.ways)

    def fill_put(self, gap: Gap) -> None:
        ways = best(each for way in self.ways for each in self.filled(way, gap))
        if not ways:
            self.found.puts.append(gap)
        self.ways = ways or self.ways

    def extend(self, gap: Gap) -> None:
        """After the last known position a way uses its killed put, if it has one: no later gap needs it."""
        short = [way._replace(is_short=True) for way in self.ways if way.is_short or not any(self.filled(way, gap))]
        longer = [each for way in self.ways if not way.is_short for each in self.filled(way, gap)]
        self.ways = best([*short, *longer])

    def filled(self, way: Way, gap: Gap) -> Iterator[Way]:
        named = self.puts.named.get(gap.position)
        if named is not None and named <= gap.deadline:
            yield way._replace(latest=max(way.latest, named))
        if way.puts < len(self.puts.others) and self.puts.others[way.puts] <= gap.deadline:
            yield way._replace(latest=max(way.latest, self.puts.others[way.puts]), puts=way.puts + 1)

    def explain_get(self, gap: Gap) -> None:
        overwritten = [way for way in self.ways if self.is_overwritten(gap, way)]
        if len(overwritten) == len(self.ways):
            return
        named = self.gets.named.get(gap.position)
        if named is not None and named <= gap.deadline:
            self.named_gets += 1
            return
        taken = [
            way._replace(gets=way.gets + 1)
            for way in self.ways
            if way.gets < len(self.gets.others) and self.gets.others[way.gets] <= gap.deadline
        ]
        ways = best([*overwritten, *taken])
        if not ways:
            self.found.gets.append(gap)
        self.ways = ways or self.ways

    def is_overwritten(self, gap: Gap, way: Way) -> bool:
        by = gap.overwritten_by
        if self.decided_at(gap) >= self.extent.puts_needed and (way.is_short or by < self.extent.last_put):
            return False
        return by > START and way.latest <= by


def best(ways: Iterable[Way]) -> list[Way]:
    kept: list[Way] = []
    for way in sorted(set(ways)):
        if not any(way.is_beaten_by(each) for each in kept):
            kept.append(way)
    return kept
