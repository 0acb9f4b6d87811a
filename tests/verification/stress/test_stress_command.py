"""The command `queueduct stress`: its options, its answers, its errors."""

from __future__ import annotations

import json
import statistics

import pytest
from click.testing import CliRunner

from queueduct.cli import main

pytest.importorskip("pyarrow", reason="histories are Parquet")


def call(*arguments):
    return CliRunner().invoke(main, ["stress", *map(str, arguments)])


def test_help_has_examples():
    output = call("--help").output
    assert "queueduct stress bounded --history runs/bounded" in output
    assert "10M" in output


def test_a_run_says_what_it_did_and_how_to_prove_it(tmp_path):
    result = call("bounded", "--threads", "--ops", "2k", "--history", tmp_path / "run")
    assert result.exit_code == 0, result.output
    assert "1,000 items put, 1,000 got" in result.output
    assert f"queueduct check {tmp_path / 'run'}" in result.output


def test_kills_that_came_too_late_are_not_passed_over_in_silence():
    result = call("bounded", "--ops", "2k", "--kill", "0.001", "--no-history")
    assert "no worker was killed: it was over too soon for 0.001 a second" in result.output


def test_json_is_for_scripts(tmp_path):
    result = call("slots", "--threads", "--ops", "2000", "--history", tmp_path / "run", "--json")
    found = json.loads(result.output)
    assert (found["kind"], found["put"], found["got"], found["left"]) == ("slots", 1000, 1000, 0)
    assert found["history"] == str(tmp_path / "run")


def test_without_a_history_it_only_runs():
    found = json.loads(call("overwriting", "--threads", "--ops", "2k", "--no-history", "--json").output)
    assert (found["history"], found["rows"]) == (None, 0)


def test_the_cost_of_recording_is_measured_in_turns():
    found = json.loads(call("bounded", "--threads", "--ops", "5k", "--cost", "--json").output)
    assert len(found["costs"]) == len(found["cpu_costs"]) == found["rounds"]
    assert found["cost"] == statistics.median(found["costs"])
    assert found["cpu_cost"] == statistics.median(found["cpu_costs"])
    assert found["recorded_per_second"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("bounded",), "give --history DIR, or --no-history, or --cost"),
        (("bounded", "--history", "x", "--no-history"), "give --history DIR, or --no-history, or --cost"),
        (("heap", "--no-history"), "'heap' is not one of"),
        (("bounded", "--no-history", "--ops", "many"), "'many' is no whole number"),
        (("bounded", "--no-history", "--ops", "0"), "'0' is less than 1"),
        (("bounded", "--no-history", "--ops", "1.5"), "no whole number"),
        (("bounded", "--no-history", "--producers", "0"), "producers must be at least 1: producers=0"),
        (("bounded", "--no-history", "--consumers", "500"), "at most 200 workers"),
        (("bounded", "--no-history", "--batch", "1M"), "not a valid integer"),
        (("bounded", "--no-history", "--batch", "100000"), "batch must be at most"),
        (("bounded", "--no-history", "--ops", "1000G"), "ops must be at most"),
        (("bounded", "--no-history", "--threads", "--kill", "1"), "a thread cannot be killed"),
        (("bounded", "--no-history", "--kill", "-1"), "kill must be from 0"),
        (("bounded", "--no-history", "--mix", "steal=1"), "'steal=1' is no weight"),
        (("bounded", "--no-history", "--mix", "put=0,try_put=0"), "mix must give put or try_put a positive weight"),
        (("bounded", "--no-history", "--item-bytes", "12"), "a multiple of them"),
        (("bounded", "--no-history", "--capacity", "8G"), "capacity must be at most 4294967296"),
    ],
)
def test_a_bad_option_is_one_clear_line(arguments, message):
    result = call(*arguments)
    assert result.exit_code != 0
    assert message in result.output
    assert "Traceback" not in result.output


def test_a_history_that_exists_is_refused(tmp_path):
    (tmp_path / "file").touch()
    result = call("bounded", "--history", tmp_path / "file")
    assert result.exit_code == 1
    assert "exists; give another, or remove it" in result.output
