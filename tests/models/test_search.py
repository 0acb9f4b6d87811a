"""The search itself, on a toy: what it finds, and what it never claims."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from models.core.search import STUCK, StateLimitExceeded, Transition, Violation, explore


class Stairs:
    """A toy: climb from 0 to `top`, one step at a time, with trouble where the test wants it."""

    def __init__(
        self,
        top: int,
        *,
        hole: int | None = None,
        broken: int | None = None,
        lift: int | None = None,
    ) -> None:
        self._top = top
        self._hole = hole
        self._broken = broken
        self._lift = lift

    def initial(self) -> int:
        return 0

    def successors(self, state: int) -> Iterator[Transition[int]]:
        if state == self._lift:
            yield Transition("lift", self._top, is_adversary=True)
        if state in (self._hole, self._top):
            return
        broken = Violation("broken", f"stair {state}") if state == self._broken else None
        yield Transition(f"step {state}", state + 1, broken)

    def is_accepted(self, state: int) -> bool:
        return state == self._top

    def describe(self, state: int) -> str:
        return f"stair {state}"


def test_a_clean_model_is_visited_completely() -> None:
    result = explore(Stairs(5), state_limit=100)
    assert result.is_clean
    assert (result.states, result.transitions, result.accepted) == (6, 5, 1)


def test_a_stuck_state_is_found_with_the_way_into_it() -> None:
    result = explore(Stairs(5, hole=2), state_limit=100)
    assert result.counts == {STUCK: 3}
    # Stair 0 is lost already: no way leads from it to the top.
    assert result.counterexamples[STUCK].descriptions == ("stair 0",)


def test_a_kill_is_no_way_out_of_a_stuck_state() -> None:
    result = explore(Stairs(5, hole=2, lift=2), state_limit=100)
    assert STUCK in result.counts


def test_a_violation_comes_with_its_steps_and_is_not_followed() -> None:
    result = explore(Stairs(5, broken=2), state_limit=100)
    found = result.counterexamples["broken"]
    assert found.labels == ("step 0", "step 1", "step 2")
    assert found.descriptions == ("stair 0", "stair 1", "stair 2")
    assert str(found).endswith("2. step 1 -> stair 2\n   3. step 2")
    assert result.counts == {"broken": 1}
    assert result.states == 3


def test_the_counterexample_is_a_shortest_one() -> None:
    class Detour(Stairs):
        def successors(self, state: int) -> Iterator[Transition[int]]:
            if state == 0:
                yield Transition("walk", 1)
                yield Transition("jump", 3)
            yield from super().successors(state)

    result = explore(Detour(5, broken=3), state_limit=100)
    assert result.counterexamples["broken"].labels == ("jump", "step 3")


def test_an_early_stop_is_never_called_clean() -> None:
    result = explore(Stairs(5, broken=2), state_limit=100, stop_at_first_violation=True)
    assert not result.is_complete
    assert not result.is_clean


def test_too_many_states_are_an_error_and_not_an_answer() -> None:
    with pytest.raises(StateLimitExceeded, match="state_limit=3"):
        explore(Stairs(5), state_limit=3)
