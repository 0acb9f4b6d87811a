"""The pictures and figures of the documentation are what their scripts make of what is in the tree."""

import json
import re
import xml.etree.ElementTree as ElementTree

import pytest

from benchmarks import figures
from docs.pictures import crashes, queues, svg

RUN = json.loads(figures.RUN.read_text())


def test_the_picture_of_the_five_kinds_is_what_its_script_draws():
    assert queues.PATH.read_text() == queues.draw()


@pytest.mark.parametrize("path", crashes.PICTURES, ids=lambda path: path.name)
def test_a_picture_of_crashes_is_what_its_script_draws(path):
    assert path.read_text() == crashes.PICTURES[path]()


def test_the_plot_is_of_the_run_that_is_kept():
    assert figures.PICTURE.read_text() == figures.plot(RUN)


def test_the_tables_of_the_benchmarks_page_are_of_the_run_that_is_kept():
    assert figures.PAGE.read_text() == figures.page(RUN)
    assert f"commit {RUN['commit']}" in figures.tables(RUN)


def test_the_plot_has_a_bar_for_every_queue_that_was_measured():
    measured = [entry for entry in figures.row_of(RUN, figures.PLOTTED)["entries"] if entry["median"] is not None]
    drawn = figures.plot(RUN)
    assert [entry["name"] for entry in measured if f">{entry['name']}<" not in drawn] == []
    assert "queueduct" in [entry["name"] for entry in measured if entry["ours"]]


@pytest.mark.parametrize("path", [queues.PATH, figures.PICTURE, *crashes.PICTURES], ids=lambda path: path.name)
def test_a_picture_is_whole_and_has_a_dark_form_of_each_of_its_colours(path):
    text = path.read_text()
    picture = ElementTree.fromstring(text)
    used = {word for part in picture.iter() for word in part.get("class", "").split()} - {"none"}
    dark = text.partition("prefers-color-scheme: dark")[2].partition("</style>")[0]
    assert used
    assert used <= set(re.findall(r"\.([\w-]+) \{", dark))
    assert {name.removeprefix("line-") for name in used} <= set(svg.PALETTE)
