"""The models find every planted mistake, and find none in the algorithm."""

from __future__ import annotations

import json
import shlex
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import pytest

from models import ring, slots
from models.__main__ import main
from models.core.campaign import Case
from models.core.registry import registered_models
from models.core.search import Model, Transition, explore
from models.events import log
from models.growing import levels

MODELS_FOLDER = Path(__file__).parents[2] / "models"
STATE_LIMIT = 500_000
CAMPAIGNS = {name: model.campaign for name, model in registered_models().items()}

SOUND_CASES = [(name, case) for name, campaign in CAMPAIGNS.items() for case in campaign.sound]
BROKEN_CASES = [(name, case) for name, campaign in CAMPAIGNS.items() for case in campaign.broken]
SIZES_OF_BROKEN = sorted(
    {(name, replace(case.configuration, variant="")) for name, case in BROKEN_CASES},
    key=str,
)


def is_big(size: Any) -> bool:
    """A search of several seconds, or of tens."""
    if isinstance(size, ring.Configuration):
        return size.is_sound and (size.kills > 1 or size.consumers > 2)
    if not isinstance(size, levels.Configuration):
        return False
    if size.is_sound:
        return size.producers == (3, 1) or size.consumers > 1
    return size.variant in ("range-not-checked-again", "followed-by-maker-only")


def with_marks(name: str, size: Any, given: Any) -> Any:
    return pytest.param(name, given, marks=[pytest.mark.long] if is_big(size) else [])


@pytest.mark.parametrize(("name", "case"), SOUND_CASES, ids=str)
def test_the_algorithm_survives_a_kill_at_every_step(name: str, case: Case[Any]) -> None:
    report = CAMPAIGNS[name].run(case, state_limit=STATE_LIMIT)
    assert report.result.is_clean, "\n".join(map(str, report.result.counterexamples.values()))
    assert report.result.accepted


@pytest.mark.parametrize(
    ("name", "case"), [with_marks(name, case.configuration, case) for name, case in BROKEN_CASES], ids=str
)
def test_a_broken_rule_is_caught_as_what_it_breaks(name: str, case: Case[Any]) -> None:
    report = CAMPAIGNS[name].run(case, state_limit=STATE_LIMIT)
    assert case.expected in report.result.counts


@pytest.mark.parametrize(("name", "size"), [with_marks(name, size, size) for name, size in SIZES_OF_BROKEN], ids=str)
def test_the_algorithm_is_clean_wherever_a_broken_rule_is_caught(name: str, size: Any) -> None:
    assert explore(CAMPAIGNS[name].model(size), state_limit=STATE_LIMIT).is_clean


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_every_broken_variant_stands_in_both_campaigns(name: str) -> None:
    for cases in (CAMPAIGNS[name].short, CAMPAIGNS[name].long):
        assert {case.configuration.variant for case in cases} == set(CAMPAIGNS[name].configuration.VARIANTS)


def test_every_folder_with_a_model_is_registered() -> None:
    folders = {path.parent.relative_to(MODELS_FOLDER) for path in MODELS_FOLDER.rglob("model.py")}
    assert folders
    assert {".".join(folder.parts) for folder in folders} == set(CAMPAIGNS)


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_every_model_has_a_page_that_names_its_variants(name: str) -> None:
    page = MODELS_FOLDER.joinpath(*name.split("."), "README.md").read_text()
    broken = {case.configuration.variant for case in CAMPAIGNS[name].broken}
    assert {variant for variant in broken if f"`{variant}`" not in page} == set()


@pytest.mark.long
@pytest.mark.parametrize(
    "case",
    [case for case in ring.CAMPAIGN.broken if case.configuration.lines <= 3 and case.configuration.kills < 2],
    ids=lambda case: case.configuration.variant,
)
def test_keeping_idle_recoveries_changes_no_conviction(case: Case[ring.Configuration]) -> None:
    exact = replace(case, configuration=replace(case.configuration, is_exact=True))
    assert case.expected in ring.CAMPAIGN.run(exact, state_limit=STATE_LIMIT).result.counts


@pytest.mark.parametrize(
    "size",
    [
        ring.Configuration(consumers=2, kills=2),
        ring.Configuration(producers=2, kills=2),
        ring.Configuration(items=3, item_slots=(1, 2), kills=2),
        ring.Configuration(rejoins=1, kills=2),
    ],
    ids=str,
)
def test_keeping_idle_recoveries_changes_no_acquittal(size: ring.Configuration) -> None:
    model = ring.LedgerModel(replace(size, is_exact=True))
    assert explore(model, state_limit=STATE_LIMIT).is_clean


State = TypeVar("State", bound=Hashable)


class Named(Protocol):
    @property
    def at(self) -> str: ...


class Stepped(Model[State], Protocol):
    def steps(self, state: State) -> tuple[Named, ...]: ...


class Recorder(Generic[State]):
    """Notes which step of a model followed which."""

    def __init__(self, model: Stepped[State]) -> None:
        self._model = model
        self.initial = model.initial
        self.is_accepted = model.is_accepted
        self.describe = model.describe
        self.seen: set[tuple[str, str]] = set()

    def successors(self, state: State) -> Iterator[Transition[State]]:
        for transition in self._model.successors(state):
            steps = self._model.steps(state), self._model.steps(transition.state)
            for before, after in zip(*steps, strict=True):
                if before is not after:
                    self.seen.add((before.at, after.at))
            yield transition


def seen_in(models: Iterable[Stepped[Any]]) -> set[tuple[str, str]]:
    seen: set[tuple[str, str]] = set()
    for model in models:
        recorder = Recorder(model)
        assert explore(recorder, state_limit=STATE_LIMIT).is_clean
        seen |= recorder.seen
    return seen


def test_the_search_reaches_the_rare_ways_through_recovery() -> None:
    seen = seen_in(
        ring.LedgerModel(size)
        for size in (
            ring.Configuration(items=2, item_slots=(2,), consumers=2, kills=2),
            ring.Configuration(producers=2, item_slots=(2,), kills=1),
            ring.Configuration(rejoins=1, kills=1),
            ring.Configuration(consumers=3),
        )
    )
    redelivers = "redeliver: compare-and-swap generation to redelivered"
    reads_head = "recover: read generation of the head"
    frees = "recover: compare-and-swap to free"
    assert {
        ("put: compare-and-swap push_position", "put: clear intent of the lost claim"),
        ("get: compare-and-swap pop_position", "get: clear intent of the lost claim"),
        ("get: compare-and-swap pop_position", "get: release a slot"),
        ("recover: compare-and-swap free to tombstone", "put: read push_position"),
        ("recover: compare-and-swap free to tombstone", "get: read pop_position"),
        ("recover: read generation", frees),
        ("recover: test whether the redeliverer is dead", "recover: read length"),
        ("recover: test whether the redeliverer is dead", "get: read pop_position"),
        (reads_head, frees),
        (reads_head, "put: read push_position"),
        (redelivers, "redeliver: copy a slot"),
        (redelivers, "redeliver: clear intent"),
        ("redeliver: release a slot", "dead"),
        ("join: check that the position is not outstanding", "dead"),
        ("join: clear intent", "put: read push_position"),
        ("join: clear intent", "get: read pop_position"),
    } - seen == set()


def test_the_search_reaches_the_rare_ways_through_the_log() -> None:
    seen = seen_in(
        log.EventsModel(size)
        for size in (
            log.Configuration(writers=("1c", "1"), newcomer="1", kills=2),
            log.Configuration(writers=("12", "1"), chunk_items=2, kills=1),
            log.Configuration(writers=("1c1c",)),
            log.Configuration(writers=("111",), readers=("ephemeral", "latest"), chunk_lines=3),
            log.Configuration(writers=("11", "1"), blocks=1, may_drop=True, kills=1),
            log.Configuration(writers=("2111",), chunk_lines=3, may_drop=True),
            log.Configuration(writers=("11",), readers=("ephemeral", "unregistered"), blocks=1, kills=1),
            log.Configuration(writers=("2",), readers=("named",), kills=2),
        )
    )
    takes = "lock: take it if it is free, or check whether its owner is dead"
    takes_over = "lock: compare-and-swap the word of the dead owner"
    assert {
        (takes_over, takes),
        (takes_over, "repair: store end with the epoch of start"),
        (takes, "repair: forget the blocks"),
        ("repair: open the last chunk again", "repair: lower chunks_made"),
        ("repair: claim the blocks of kept chunks", "dead"),
        ("repair: give back the memory of free blocks", "dead"),
        ("repair: give back the memory of free blocks", "clear: store start"),
        ("put: store end", "readers: release one whose process is dead"),
        ("lock: free it", "put: wait for room"),
        ("free: read a reader's place", "chunk: end the open one"),
        ("free: read a reader's place", "readers: drop the slowest"),
        ("session: load start", "session: move the place to the start"),
        ("find: read head_chunk again", "find: read head_chunk"),
        ("find: read first_position of the middle", "find: read first_position of the middle"),
        ("run: load first_position of the next chunk", takes),
        ("run: was the reader dropped meanwhile?", takes),
        ("reader: store the place without the mark of the drop", "dead"),
        ("subscribe: write name and place", "dead"),
        (takes, "subscribe: hold the line of that name again"),
        ("position: copy the item", "position: is the chunk still kept?"),
    } - seen == set()


def test_the_search_reaches_the_rare_ways_through_the_slots() -> None:
    seen = seen_in(
        slots.SlotsModel(size)
        for size in (
            slots.Configuration(producers=2, kills=2),
            slots.Configuration(consumers=2, kills=2),
            slots.Configuration(items=2, consumers=2, kills=1),
            slots.Configuration(items=2, overwrites=True, kills=1),
            slots.Configuration(consumers=3, kills=1),
            slots.Configuration(put_once=True, producers=2, kills=1),
        )
    )
    swaps = "recover: compare-and-swap the word of the dead"
    assert {
        ("claim: is it still the front?", "claim: read head"),
        ("claim: is it still the front?", "claim: compare-and-swap head"),
        ("claim: compare-and-swap the word", "claim: is the word claimed by now?"),
        ("claim: is the word claimed by now?", "claim: compare-and-swap head"),
        ("push: read the cell at tail", "push: compare-and-swap tail"),
        ("push: compare-and-swap tail", "push: read tail"),
        ("recover: is the front claimed?", "recover: compare-and-swap head"),
        ("recover: has head passed that cell?", "recover: read a cell"),
        ("recover: has head passed that cell?", swaps),
        ("recover: read a cell", swaps),
        ("recover: compare-and-swap the stray's word", "leave: the word to leaving"),
        ("recover: compare-and-swap the stray's word", "recover: search for a stray"),
        ("get: compare-and-swap the orphan's word", "get: read the item"),
        ("get: compare-and-swap the orphan's word", "claim: read head"),
        ("recover: is the word still the same?", "recover: read a word"),
        ("cut: read kept", swaps),
        ("cut: compare-and-swap kept", swaps),
        ("put once: read the word of the slot", "recover: read a word"),
        ("put once: read the word of the slot", "put once: was it cut?"),
        ("put once: read progress", "finished"),
    } - seen == set()


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("ring", ["--items", "2", "--item-slots", "1,2"], ("item_slots", [1, 2])),
        ("events.log", ["--writers", "12,c", "--chunk-items", "2"], ("writers", ["12", "c"])),
        ("overwriting", ["--programs", "pp,g", "--capacity", "2"], ("programs", ["pp", "g"])),
        ("slots", ["--items", "2", "--overwrites"], ("overwrites", True)),
    ],
)
def test_the_command_reports_json_and_succeeds_when_the_algorithm_is_clean(
    name: str,
    arguments: list[str],
    expected: tuple[str, object],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([name, *arguments, "--json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert report["passed"]
    assert report["model"] == name
    assert report[expected[0]] == expected[1]
    assert report["states"] > 100


@pytest.mark.parametrize(
    ("name", "variant"),
    [
        ("ring", ["--variant", "plain"]),
        ("events.log", ["--variant", "no-take-over", "--writers", "1,1"]),
        ("overwriting", ["--variant", "no-settle"]),
        ("slots", ["--variant", "head-before-word"]),
    ],
)
def test_the_command_knows_whether_a_broken_variant_is_caught(
    name: str, variant: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([name, *variant, "--kills", "1", "--trace"]) == 0
    assert "is killed" in capsys.readouterr().out
    assert main([name, *variant, "--kills", "0"]) == 1


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_the_command_says_so_when_nothing_was_shown(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--state-limit", "10"]) == 2
    assert "state_limit=10" in capsys.readouterr().err


def test_the_command_searches_all_models(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--all", "--short", "--state-limit", "10"]) == 2
    searches = sum(len(campaign.short) for campaign in CAMPAIGNS.values())
    assert f"1/{searches} " in capsys.readouterr().err


def test_the_command_lists_all_models(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(CAMPAIGNS)


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_a_configuration_prints_the_options_that_make_it(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for case in CAMPAIGNS[name].long:
        assert main([name, *shlex.split(str(case)), "--state-limit", "1"]) == 2
        assert f"1/1 {name} {case}\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ring", "--capacity", "0"], "capacity must be at least 1"),
        (["ring", "--item-slots", "3"], "1 to capacity slots"),
        (["ring", "--kills", "-1"], "kills must be at least 0"),
        (["ring", "--rejoins", "2"], "rejoins must be 0 or 1"),
        (["ring", "--items", "100"], "at most 64 slots"),
        (["ring", "--short", "--kills", "3"], "bring their own sizes"),
        (["events.log", "--blocks", "0"], "blocks must be at least 1"),
        (["events.log", "--chunk-lines", "1"], "chunk_lines must be at least 2"),
        (["events.log", "--kills", "-1"], "kills must be at least 0"),
        (["events.log", "--writers", "1,3"], "a writer's operations are 1, 2, l, x, c, k"),
        (["events.log", "--writers", ""], "1 writer or more"),
        (["events.log", "--readers", "slow"], "no such reader"),
        (["events.log", "--readers", "durable,named"], "at most one durable reader"),
        (["events.log", "--long", "--kills", "3"], "bring their own sizes"),
        (["overwriting", "--capacity", "0"], "capacity must be at least 1"),
        (["overwriting", "--kills", "-1"], "kills must be at least 0"),
        (["overwriting", "--programs", "px"], "operations are p, k, g"),
        (["overwriting", "--programs", "p,p,p,p,p"], "at most 4"),
        (["slots", "--slots", "0"], "slots must be at least 1"),
        (["slots", "--kills", "-1"], "kills must be at least 0"),
        (["slots", "--short", "--kills", "3"], "bring their own sizes"),
        (["growing.levels", "--slots", "2,1"], "slots must be at least 2"),
        (["growing.plans", "--levels", "2"], "levels must be at least 3"),
        (["growing.read_guard", "--moves", "0"], "moves must be at least 1"),
        (["events.cuts", "--openers", "5"], "1 to 4 openers"),
        (["--all"], "--all needs --short or --long"),
        (["--all", "--short", "ring"], "name one model, or give --all"),
        ([], "name one model, or give --all"),
        (["no_such_model"], "invalid choice"),
    ],
)
def test_the_command_refuses_a_world_that_makes_no_sense(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert message in capsys.readouterr().err
