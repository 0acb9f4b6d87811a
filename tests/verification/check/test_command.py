"""The command: what a person and a script see, and what the report draws."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from queueduct.cli import main
from queueduct.verification.check.report.svg import round_marks
from queueduct.verification.check.verdict import witness_line
from tests.verification.check.histories import find, history_of
from tests.verification.check.writing import write


@pytest.fixture
def right(tmp_path):
    return write(tmp_path / "right", history_of(), "bounded", 2)


@pytest.fixture
def wrong(tmp_path):
    rows = history_of()
    wrong_order(rows)
    return write(tmp_path / "wrong", rows, "bounded", 2)


def wrong_order(rows):
    first, second = find(rows, "get", 104), find(rows, "get", 105)
    for column in ("invoke_ns", "return_ns"):
        first[column], second[column] = second[column], first[column]


def call(*arguments):
    return CliRunner().invoke(main, ["check", *map(str, arguments)])


def test_a_right_history_passes_with_exit_code_0(right):
    result = call(right)
    assert result.exit_code == 0, result.output
    assert "26 operations of kind bounded" in result.output
    assert "never more than 2 items" in result.output


def test_a_wrong_history_fails_with_exit_code_1_and_both_witnesses(wrong):
    result = call(wrong)
    assert result.exit_code == 1
    assert "FAILED" in result.output
    assert "value=104" in result.output
    assert "value=105" in result.output


def test_a_witness_is_told_with_all_that_is_known_of_it_though_it_be_0():
    row = {"worker": 0, "op": "get", "outcome": "ok", "value": 0, "ticket": 0, "invoke_ns": 0, "return_ns": 70}
    assert witness_line(row | {"weak": False}) == "worker 0: get ok value=0 ticket=0 ns=0+70"
    pending = {"worker": 3, "op": "put", "outcome": "pending", "value": 7, "invoke_ns": 5, "return_ns": None}
    assert witness_line(pending | {"reader": 0, "weak": True}) == "worker 3: put pending value=7 reader=0 ns=5 weak"
    assert witness_line({"value": 7}) == "value=7"


def test_bad_input_has_exit_code_2_and_one_line(tmp_path):
    result = call(tmp_path)
    assert result.exit_code == 2
    assert "finished history has manifest.json" in result.output
    assert "Traceback" not in result.output


def test_json_is_for_a_script(wrong):
    told = json.loads(call(wrong, "--json").stdout)
    assert told["ok"] is False
    assert told["operations"] == 26
    assert told["counts"]["order"] >= 1
    (first, second) = told["violations"][0]["witnesses"]
    assert {"worker", "invoke_ns", "return_ns", "value", "ticket"} <= first.keys() & second.keys()


def test_help_has_examples():
    assert "queueduct check runs/bounded --report" in call("--help").output


def pictures(path):
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"(src|href)=", text), "it is complete in itself"
    return [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", text, re.DOTALL)]


def inside(picture, shape):
    """Is the shape where it can be seen?"""
    *_, width, height = map(float, picture.get("viewBox").split())
    if shape.tag.endswith("polyline"):
        points = [tuple(map(float, point.split(","))) for point in shape.get("points").split()]
        return all(0 <= x <= width and 0 <= y <= height for x, y in points)
    x, y = float(shape.get("x")), float(shape.get("y"))
    far = x + float(shape.get("width", 0)), y + float(shape.get("height", 0))
    return x >= 0 and y >= 0 and far[0] <= width + 1 and far[1] <= height + 1


def test_the_report_draws_everything_inside_its_pictures(wrong, tmp_path):
    path = tmp_path / "report.html"
    assert call(wrong, "--report", path).exit_code == 1
    *timelines, throughput, occupancy, latency = pictures(path)
    assert timelines
    for picture in (*timelines, throughput, occupancy, latency):
        shapes = [shape for shape in picture if shape.tag.rpartition("}")[2] in ("rect", "polyline", "text")]
        assert len(shapes) > 3
        for shape in shapes:
            assert inside(picture, shape), ElementTree.tostring(shape)


def test_the_timeline_shows_the_witnesses_in_the_order_of_their_times(wrong, tmp_path):
    path = tmp_path / "report.html"
    call(wrong, "--report", path)
    timeline = pictures(path)[0]
    bars = [shape for shape in timeline if shape.tag.endswith("rect")]
    red = [float(shape.get("x")) for shape in bars if shape.get("fill") == "#d62728"]
    assert len(red) == 2
    assert red == sorted(red)
    assert [float(shape.get("y")) for shape in bars] == sorted(float(shape.get("y")) for shape in bars)


def test_an_operation_that_is_much_longer_does_not_hide_the_witnesses(tmp_path):
    """The timeline is as long as the violation, and what began before it is cut."""
    rows = history_of()
    wrong_order(rows)
    rows[-1]["invoke_ns"] -= 10**9
    path = tmp_path / "report.html"
    assert call(write(tmp_path / "wrong", rows, "bounded", 2), "--report", path).exit_code == 1
    bars = [shape for shape in pictures(path)[0] if shape.tag.endswith("rect")]
    assert all(float(shape.get("width")) > 20 for shape in bars if shape.get("fill") == "#d62728")


def test_the_report_of_a_right_history_has_no_timeline(right, tmp_path):
    path = tmp_path / "report.html"
    assert call(right, "--report", path).exit_code == 0
    assert len(pictures(path)) == 3
    assert "passed" in path.read_text(encoding="utf-8")


def test_a_report_that_fails_leaves_the_one_before_it_alone(right, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("before")

    def fails(*_):
        raise OSError("no space left")

    monkeypatch.setattr("os.replace", fails)
    assert call(right, "--report", path).exit_code == 2
    assert path.read_text() == "before"
    assert [each.name for each in tmp_path.iterdir() if each.is_file()] == ["report.html"]


@pytest.mark.parametrize(
    ("low", "high", "marks"),
    [
        (0, 1024, [0, 200, 400, 600, 800, 1000]),
        (0, 46.4e6, [0, 10e6, 20e6, 30e6, 40e6]),
        (-3, 8, [-2, 0, 2, 4, 6, 8]),
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0, 0, [0]),
    ],
)
def test_an_axis_has_round_marks(low, high, marks):
    assert round_marks(low, high, 6) == pytest.approx(marks)
