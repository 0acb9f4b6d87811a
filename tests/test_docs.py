"""What the pages show runs, and what they say of numbers is what the code says."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import queueduct
from queueduct.native import _layout

ROOT = Path(__file__).parent.parent


def python_blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_readme_example_carries_ticks_from_one_process_to_another():
    producer, consumer, _ = python_blocks("README.md")
    for _ in range(2):
        run(producer)
        assert run(consumer).splitlines() == ["101.5", "1.0"]
    assert [info[:2] for info in queueduct.queues()] == [("ticks", "bounded")]


def test_the_example_of_the_watching_page_runs_twice():
    (code,) = python_blocks("docs/watching.md")
    for _ in range(2):
        told = run(code).splitlines()
        assert (told[0], told[-1], len(told)) == ("1 got since then, 0 left", "still there: False", 3)


def test_the_example_of_the_events_page_runs():
    (code,) = python_blocks("docs/queues/events.md")
    assert run(code).splitlines() == ["101.5", "0.0"]


def test_the_example_of_the_overwriting_page_runs():
    code, latest, lease = python_blocks("docs/queues/overwriting.md")
    assert run(latest).splitlines() == ["1.5", "2.5"]
    assert run(code).splitlines() == ["6.0", "9.0", "6", "True"]
    assert run(lease) == "[12 13 14 15 16 17 18 19] [12. 13. 14. 15. 16. 17. 18. 19.]\n"


def test_the_layout_page_has_every_overwriting_word_at_its_offset():
    page = (ROOT / "docs/memory-layout.md").read_text()
    section = page.partition("\n## An overwriting segment")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| (\d+) \| (\w+)", section, re.MULTILINE))
    header = {"0": "items", "8": "QUEUE_MAX_LEN", "12": "MSG_SIZE", "16": "HEADER_LOCK", "24": "START_IDX"}
    assert rows | header == rows
    with queueduct.OverwritingQueue.create("q", 3, message_bytes=8) as q:
        for i in range(5):
            q.put(bytes([i]) * 8)
        q.get()
        q.lease(1).give_back()
        q.lease(1).release()
        data = (Path(os.environ["QUEUEDUCT_DIR"]) / "q").read_bytes()
    own = 4096
    control = int.from_bytes(data[own + 64 : own + 72], "little")
    counted = {name: int.from_bytes(data[control + int(at) :][:8], "little") for at, name in rows.items()}
    assert (counted["puts"], counted["taken"], counted["dropped"], counted["torn"]) == (5, 2, 2, 0)
    assert (counted["lost"], counted["next_position"], counted["cells_used"], counted["redelivered"]) == (0, 4, 1, 1)
    assert counted["ring_state"] == 1 << 32 | 1


def test_the_examples_of_the_bounded_page_run():
    first, named, once, lease, join = python_blocks("docs/queues/bounded.md")
    run(first)
    refusal, prices = run(named).splitlines()
    assert refusal.startswith(re.search(r"# (field .*) \.\.\.$", named, re.MULTILINE)[1])
    assert prices == re.search(r"# (\[101.*\])$", named, re.MULTILINE)[1]
    assert run(join).splitlines() == ["[b'one']", "[b'two']"]
    assert run("import queueduct\n" + lease).splitlines() == ["0 b'to Ada'", "1 b'to Alan'"]
    shown = re.sub(r"^    (orders\..*?)  # .*$", r"    print(\1)", "import queueduct\n" + once, flags=re.MULTILINE)
    results = re.findall(r"  # (\d+|\[.*\])", once)
    assert len(results) == 3
    assert run(shown).splitlines() == results


def test_the_example_of_the_growing_page_runs():
    (code,) = python_blocks("docs/queues/growing.md")
    assert run(code).splitlines() == ["4 10000", "b'0'"]


def test_the_example_of_the_page_on_types_runs_and_type_checks(tmp_path):
    (code,) = python_blocks("docs/typing.md")
    assert run(code) == "7\n"
    if importlib.util.find_spec("mypy") is None:  # only the environment of lint has it
        return
    (tmp_path / "typed.py").write_text(code)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir", tmp_path, "typed.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout


def test_the_example_of_the_drop_in_page_runs():
    (code,) = python_blocks("docs/drop-in.md")
    for _ in range(2):
        assert run(code) == "[1, 4, 9]\n"


def test_the_examples_of_the_slots_page_run():
    first, lease, last = python_blocks("docs/queues/slots.md")
    assert run(first).splitlines() == ["1.0 0 False"]
    assert run("import numpy as np\nimport queueduct\n" + lease).splitlines() == ["(3, 4, 5) [0 1 2]"]
    shown = run("import queueduct\n" + last)
    assert shown.splitlines() == ["[(1, 0), (0, 1), (0, 2), (0, 3)] (0, 1) (1, 1)"]


def run_file(path: Path, code: str) -> str:
    path.write_text(code)
    return subprocess.check_output([sys.executable, path], text=True, timeout=60)


def test_the_examples_of_the_page_on_jobs_run_again_and_again(tmp_path):
    own, named, letters = python_blocks("docs/jobs.md")
    for _ in range(2):
        assert run_file(tmp_path / "own.py", own).splitlines() == ["ONE", "['TWO', 'THREE']"]
        assert run_file(tmp_path / "named.py", named).splitlines() == ["2 done, 1 dead", "[0.5, 1.0]"]
        assert run(letters).splitlines() == ["0 3 ZeroDivisionError division by zero"]


@pytest.mark.parametrize("page", ["arrow", "logging", "recording", "torch"])
def test_the_examples_of_a_page_run_and_run_again(page, tmp_path, monkeypatch):
    for module in {"arrow": ("pyarrow", "duckdb", "polars"), "recording": ("pyarrow",)}.get(page, ()):
        pytest.importorskip(module, reason=f"{module} reads the queues in the tests: make test installs it")
    monkeypatch.chdir(tmp_path)
    for block in python_blocks(f"docs/{page}.md") * 2:
        if "SlotDataset" in block and importlib.util.find_spec("torch") is None:
            continue  # it is no requirement
        Path("example.py").write_text(block)  # where a spawned process finds its functions
        done = subprocess.run([sys.executable, "example.py"], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        shown = done.stdout.splitlines()
        promised = re.findall(r"print\(.*\)  # (.*)$", block, re.MULTILINE)
        assert shown == promised


def header_rows(page: str) -> dict[str, int]:
    return {name: int(at) for at, name in re.findall(r"^\| (\d+) \| \d+ \| (\w+) \|", page, re.MULTILINE)}


def test_the_layout_page_names_every_header_field_at_its_offset():
    page = (ROOT / "docs/memory-layout.md").read_text()
    others, rest = page.split("\n## A slots segment")
    of_slots, of_growing = rest.split("\n## A growing segment")
    assert header_rows(others) == {name: offset for name, (offset, _) in _layout.EVENTS_FIELDS.items()}
    assert header_rows(of_slots) == {
        name: offset for name, (offset, _) in _layout.SLOTS_FIELDS.items() if name not in _layout.FIELDS
    }
    assert header_rows(of_growing) == {
        name: offset for name, (offset, _) in _layout.GROWING_FIELDS.items() if name not in _layout.FIELDS
    }
    assert f"Layout version {_layout.LAYOUT_VERSION}." in page


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")]


def anchors_of(page: Path) -> set[str]:
    """What a link to a heading of the page is called: as GitHub makes it."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_pages_link_to_files_and_headings_that_exist(page):
    for target, heading in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", page.read_text()):
        linked = page.parent / target if target else page
        assert linked.exists(), f"{page.name} links to {target}"
        assert not heading or heading in anchors_of(linked), f"{page.name} links to {target}#{heading}"


def test_the_changelog_knows_this_version():
    assert f"## {queueduct.__version__}" in (ROOT / "CHANGELOG.md").read_text()
