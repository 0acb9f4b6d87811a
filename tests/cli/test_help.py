"""The help of every command: it fits, it has examples, and every example runs."""

from __future__ import annotations

import json
import re
import shutil

import numpy as np
import pytest
from click.testing import CliRunner

import queueduct
from queueduct.cli import COMMANDS, SUMMARIES, main
from tests.support.command import done, shell

NOT_RUN = {  # whose examples need Spark, minutes, or somebody who ends them: tests of their own run them
    "aggregate": "tests/spark",
    "archive": "tests/spark",
    "check": "tests/verification/check",
    "demo": "tests/demo",
    "queue-demo": "tests/cli/test_queues.py",
    "stress": "tests/verification/stress",
    "hz": "tests/watching",
    "top": "tests/watching",
    "web": "tests/watching",
    "record": "tests/recording",
    "replay": "tests/recording",
}
TICK = np.dtype([("sym", "S8"), ("px", "f8"), ("ts", "M8[us]")])


def help_of(command, columns):
    arguments = [*filter(None, [command]), "--help"]
    result = CliRunner().invoke(main, arguments, env={"COLUMNS": str(columns)}, terminal_width=columns)
    assert result.exit_code == 0
    return result.output


def examples_of(command):
    """The lines of its examples; a backslash at the end continues one."""
    section = re.search(r"Examples?:\n(.*?)(?:\n\s*\n|\Z)", help_of(command, 200), re.DOTALL)
    assert section, f"{command} has no example"
    lines = section[1].replace("\\\n", " ").splitlines()
    return [re.sub(r"\s{2,}\S.*$", "", line.strip()) if not command else line.strip() for line in lines]


EXAMPLES = [(command, line) for command in ["", *COMMANDS] if command not in NOT_RUN for line in examples_of(command)]


@pytest.mark.parametrize("columns", [80, 200])
@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_the_help_fits_and_has_an_example(command, columns):
    text = help_of(command, columns)
    assert "Example" in text
    assert [line for line in text.splitlines() if len(line) > columns] == []
    assert "Traceback" not in text


def test_the_list_of_commands_says_what_each_does():
    text = help_of("", 200)
    for command in COMMANDS:
        assert SUMMARIES[command] in text


@pytest.fixture
def place(tmp_path):
    """Where an example finds all that it names."""
    ticks = np.zeros(20, TICK)
    ticks["sym"], ticks["px"] = b"ACME", np.arange(20)
    with queueduct.EventQueue.create("ticks", item=TICK) as log:
        log.put_many(ticks)
        log.subscribe("dashboard").close()
    with queueduct.BoundedQueue.create("jobs", 1024) as jobs:
        jobs.put_many([b"job-%d" % number for number in range(102)])
    queueduct.BoundedQueue.create("orders", 4).close()
    rows = [{"sym": "ACME", "px": 101.5, "ts": "2026-01-05T09:30"}] * 3
    (tmp_path / "ticks.csv").write_text("sym,px,ts\nACME,101.5,2026-01-05T09:30\n")
    (tmp_path / "ticks.json").write_text("\n".join(json.dumps(row, indent=2) for row in rows))
    (tmp_path / "more.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


@pytest.mark.parametrize(("command", "line"), EXAMPLES, ids=[line for _, line in EXAMPLES])
def test_every_example_runs(command, line, place):
    if "jq" in line and shutil.which("jq") is None:
        pytest.skip("jq is not installed here")
    if "parquet" in line:
        pytest.importorskip("pyarrow", reason="an extra: make test installs it")
    if "px:f8'" in line and not command:
        queueduct.unlink("ticks")
    elif '"px"' in line and not command:
        queueduct.EventQueue.create("ticks", item=np.dtype([("sym", "S8"), ("px", "f8")]), replace=True).close()
    elif "create" in line:
        for name in {"ticks", "jobs", "frames"} & {line.split()[2]}:
            queueduct.unlink(name, missing_ok=True)
    found = shell(line, place)
    assert found.returncode == 0 or (found.returncode == 3 and "--timeout" in line), found.stderr
    assert "Traceback" not in found.stderr


JSON = [
    "ls --json",
    "stat ticks --json",
    "readers ticks --json",
    "readers ticks --drop dashboard --json",
    "create other --like jobs --json",
    "put jobs a --json",
    "get jobs --json",
    "tail ticks -n 1 --json",
    "keep-last ticks 3 --json",
    "clear jobs --json",
    "repair ticks jobs --json",
    "shutdown jobs --json",
    "rm orders --json",
    "doctor --json",
]


@pytest.mark.parametrize("line", JSON)
def test_json_is_one_value_that_parses(line, place):
    json.loads(done(*line.split()))


def test_every_command_that_prints_a_result_has_json():
    with_option = {line.split()[0] for line in JSON} | {"bench"}
    for command in set(COMMANDS) - set(NOT_RUN) - {"completion"}:
        assert command in with_option
        assert "--json" in help_of(command, 80)
