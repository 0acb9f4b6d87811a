"""The site is whole: pages and public names are there, links lead somewhere, nothing comes from another host."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import queueduct
from docs.site import links
from queueduct.cli import COMMANDS
from tests.site.conftest import ROOT

pytestmark = pytest.mark.timeout(400)  # the first one waits for the build, on a machine that may be busy

BROKEN = {
    '<a href="no-such-page.html">': "which is not there",
    '<a href="index.html#no-such-heading">': "which has no such heading",
    '<a href="#no-such-heading">': "which has no such heading",
    '<img src="pictures/none.svg">': "which is not there",
    '<img src="https://example.org/a.png">': "from another host",
    '<script src="//example.org/a.js"></script>': "from another host",
    '<link rel="stylesheet" href="https://example.org/a.css">': "from another host",
    '<link rel="preconnect" href="https://example.org">': "from another host",
    '<style>@import "https://example.org/a.css";</style>': "from another host",
    "<style>@font-face { src: url(https://example.org/a.woff2) }</style>": "from another host",
    '<p style="background: url(//example.org/a.png)">': "from another host",
}


def pages_of(site: Path) -> set[str]:
    return {str(path.relative_to(site)) for path in site.rglob("*.html")}


def test_every_page_of_the_tree_is_a_page_of_the_site(site: Path) -> None:
    expected = {str(path.relative_to(ROOT / "docs").with_suffix(".html")) for path in ROOT.glob("docs/**/*.md")}
    assert expected <= pages_of(site)
    assert {"project/changelog.html", "project/contributing.html", "models/README.html"} <= pages_of(site)


def test_every_public_name_and_every_command_has_a_place_that_links_reach(site: Path) -> None:
    anchors = {anchor for path in site.glob("reference/**/*.html") for anchor in links.read(path).anchors}
    names = {f"queueduct.{name}" for name in queueduct.__all__ if name != "__version__"}
    not_ours = {"queueduct.Empty", "queueduct.Full"}
    if sys.version_info >= (3, 13):
        not_ours.add("queueduct.ShutDown")
    assert names - not_ours - anchors == set()
    assert {"queueduct.SlotQueue.loan", "queueduct.Reader.get_many", "queueduct.arrow.table_from"} <= anchors
    assert {f"command-{name}" for name in COMMANDS} <= anchors
    assert "queueduct.spark.session" in anchors


def test_signatures_have_types_and_examples_are_shown(site: Path) -> None:
    text = re.sub(r"<[^>]+>", "", (site / "reference/api/BoundedQueue.html").read_text())
    assert "timeout: float | None = None" in text
    assert "&gt;&gt;&gt; q.put" in text
    assert "item: type[bytes] | type[object] | DTypeLike | None = None" in text
    assert "self" not in re.findall(r"get_many\((\w+)", text)


def test_no_link_is_broken_and_nothing_comes_from_another_host(site: Path) -> None:
    assert links.problems(site) == []


@pytest.mark.parametrize("part", BROKEN, ids=range(len(BROKEN)))
def test_the_check_of_links_finds(part: str, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text('<h1 id="top">Title</h1><a href="#top">up</a><a href="https://example.org">')
    assert links.problems(tmp_path) == []
    (tmp_path / "index.html").write_text(f"<h1>Title</h1>{part}")
    (problem,) = links.problems(tmp_path)
    assert problem.startswith("index.html: ")
    assert BROKEN[part] in problem


def test_the_check_of_links_reads_styles_and_scripts(tmp_path: Path) -> None:
    (tmp_path / "a.css").write_text('@import "https://example.org/a.css"; p { background: url("none.png") }')
    (tmp_path / "a.js").write_text('fetch("https://example.org/api"); location.href = "https://example.org"')
    assert [problem.split(": ")[0] for problem in links.problems(tmp_path)] == ["a.css", "a.css", "a.js"]


def test_a_warning_ends_the_build(site: Path, tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages/index.md").write_text("# Title\n\n[nowhere](nowhere.md)\n")
    code = "import sys; from docs.site.__main__ import run_sphinx; from pathlib import Path; "
    code += "sys.exit(not run_sphinx(Path(sys.argv[1]) / 'pages', Path(sys.argv[1]) / 'out'))"
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 1
    assert "nowhere.md" in done.stderr
    shutil.rmtree(tmp_path / "pages")
