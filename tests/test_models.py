"""The models find every planted mistake, and find none in the algorithm."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from models.bounded_ledger import LEDGER, VARIANTS, Configuration, LedgerModel
from models.bounded_ledger.__main__ import COMMAND
from models.bounded_ledger.campaign import BROKEN, CAMPAIGN, SOUND_SHORT
from models.bounded_ledger.model import LedgerState
from models.campaign import Case
from models.search import STUCK, StateLimitExceeded, Transition, Violation, explore

STATE_LIMIT = 500_000


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


@pytest.mark.parametrize("case", SOUND_SHORT, ids=lambda case: str(case.configuration))
def test_the_ledger_survives_a_kill_at_every_step(case: Case[Configuration]) -> None:
    report = CAMPAIGN.run(case, state_limit=STATE_LIMIT)
    assert report.result.is_clean, "\n".join(map(str, report.result.counterexamples.values()))
    assert report.result.accepted


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.configuration.variant)
def test_a_broken_rule_is_caught_as_what_it_breaks(case: Case[Configuration]) -> None:
    report = CAMPAIGN.run(case, state_limit=STATE_LIMIT)
    assert case.expected in report.result.counts


SIZES_OF_BROKEN = sorted({replace(case.configuration, variant=LEDGER) for case in BROKEN}, key=str)


@pytest.mark.parametrize("size", SIZES_OF_BROKEN, ids=str)
def test_the_ledger_is_clean_wherever_a_broken_rule_is_caught(size: Configuration) -> None:
    assert explore(LedgerModel(size), state_limit=STATE_LIMIT).is_clean


def test_every_broken_variant_stands_in_both_campaigns() -> None:
    for campaign in (CAMPAIGN.short, CAMPAIGN.long):
        assert {case.configuration.variant for case in campaign} == set(VARIANTS)


@pytest.mark.parametrize(
    "case",
    [case for case in BROKEN if case.configuration.lines <= 3 and case.configuration.kills < 2],
    ids=lambda case: case.configuration.variant,
)
def test_keeping_idle_recoveries_changes_no_conviction(case: Case[Configuration]) -> None:
    exact = replace(case, configuration=replace(case.configuration, is_exact=True))
    assert case.expected in CAMPAIGN.run(exact, state_limit=STATE_LIMIT).result.counts


@pytest.mark.parametrize(
    "size",
    [
        Configuration(consumers=2, kills=2),
        Configuration(producers=2, kills=2),
        Configuration(items=3, item_slots=(1, 2), kills=2),
        Configuration(rejoins=1, kills=2),
    ],
    ids=str,
)
def test_keeping_idle_recoveries_changes_no_acquittal(size: Configuration) -> None:
    assert explore(LedgerModel(replace(size, is_exact=True)), state_limit=STATE_LIMIT).is_clean


class Recorder(LedgerModel):
    """Notes which step followed which."""

    def __init__(self, configuration: Configuration) -> None:
        super().__init__(configuration)
        self.seen: set[tuple[str, str]] = set()

    def successors(self, state: LedgerState) -> Iterator[Transition[LedgerState]]:
        for transition in super().successors(state):
            for before, after in zip(state.steps, transition.state.steps, strict=True):
                if before is not after:
                    self.seen.add((before.at, after.at))
            yield transition


def test_the_search_reaches_the_rare_ways_through_recovery() -> None:
    seen: set[tuple[str, str]] = set()
    for size in (
        Configuration(items=2, item_slots=(2,), consumers=2, kills=2),
        Configuration(producers=2, item_slots=(2,), kills=1),
        Configuration(rejoins=1, kills=1),
        Configuration(consumers=3),
    ):
        model = Recorder(size)
        assert explore(model, state_limit=STATE_LIMIT).is_clean
        seen |= model.seen
    adopts = "adopt: compare-and-swap generation to adopted"
    reads_head = "recover: read generation of the head"
    frees = "recover: compare-and-swap to free"
    assert {
        ("put: compare-and-swap push_position", "put: clear intent of the lost claim"),
        ("get: compare-and-swap pop_position", "get: clear intent of the lost claim"),
        ("get: compare-and-swap pop_position", "get: release a slot"),
        ("recover: compare-and-swap free to tombstone", "put: read push_position"),
        ("recover: compare-and-swap free to tombstone", "get: read pop_position"),
        ("recover: read generation", frees),
        ("recover: test whether the adopter is dead", "recover: read length"),
        ("recover: test whether the adopter is dead", "get: read pop_position"),
        (reads_head, frees),
        (reads_head, "put: read push_position"),
        (adopts, "adopt: copy a slot"),
        (adopts, "adopt: clear intent"),
        ("adopt: release a slot", "dead"),
        ("join: check that the position is not outstanding", "dead"),
        ("join: clear intent", "put: read push_position"),
        ("join: clear intent", "get: read pop_position"),
    } - seen == set()


def test_the_command_reports_json_and_succeeds_when_the_ledger_is_clean(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert COMMAND.main(["--items", "2", "--item-slots", "1,2", "--json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert report["passed"]
    assert report["item_slots"] == [1, 2]
    assert report["states"] > 100


def test_the_command_succeeds_when_a_broken_variant_is_caught(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert COMMAND.main(["--variant", "plain", "--trace"]) == 0
    assert "is killed" in capsys.readouterr().out


def test_the_command_fails_when_a_broken_variant_is_not_caught() -> None:
    assert COMMAND.main(["--variant", "plain", "--kills", "0"]) == 1


def test_the_command_says_so_when_nothing_was_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert COMMAND.main(["--state-limit", "10"]) == 2
    assert "state_limit=10" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--capacity", "0"], "capacity must be at least 1"),
        (["--item-slots", "3"], "1 to capacity slots"),
        (["--kills", "-1"], "kills must not be negative"),
        (["--rejoin", "2"], "rejoins must be 0 or 1"),
        (["--items", "100"], "at most 64 slots"),
        (["--short", "--kills", "3"], "bring their own sizes"),
    ],
)
def test_the_command_refuses_a_world_that_makes_no_sense(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        COMMAND.main(arguments)
    assert message in capsys.readouterr().err
