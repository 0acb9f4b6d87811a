"""Collects the pages of the site in one directory, from which Sphinx builds it.

The Markdown files of docs/ keep their places. Pages from elsewhere in the tree get one here, and so do source files to
which a page links. A link is rewritten for the place of its page, so the same files also read well without the site.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ELSEWHERE = {
    "README.md": "project/readme.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "benchmarks/README.md": "project/benchmarks.md",
    "examples/cpp": "sources/examples/cpp/index.md",
}
WRITTEN = """\
- [API](reference/api/index.rst): every public class and function; [the errors](reference/api/errors.rst)
- [Commands and options](reference/command.rst): what each command takes
"""
AFTER_WRITTEN = "The command"
PICTURES = (".svg", ".png")
LANGUAGES = {".py": "python", ".hpp": "cpp", ".h": "c", ".cpp": "cpp", ".c": "c"}
FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<=\]\()(?!https?:|#)([^)\s#]+)(#[^)\s]*)?(?=\))")


class Stage:
    """A directory of pages. ``changed`` says whether a file is not as an earlier run left it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.written: set[Path] = set()
        self.changed = False

    def write(self, place: str, content: str | bytes) -> None:
        path = self.directory / place
        data = content.encode() if isinstance(content, str) else content
        self.written.add(path)
        if not path.exists() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            self.changed = True

    def remove_the_rest(self) -> None:
        """Removes what an earlier run has written and this one has not."""
        for path in self.directory.rglob("*"):
            if path.is_file() and path not in self.written:
                path.unlink()
                self.changed = True


def collect(stage: Stage) -> None:
    """Write every page that is a file of the tree, the pictures, and the source files that pages link to."""
    sources: set[str] = set()
    for file, place in pages():
        text = with_links(file, place, sources)
        if file == "docs/index.md":
            text = contents(text)
        if file == "models/README.md":
            text += toctree("", each_model())
        stage.write(place, text)
    for path in sorted(DOCS.rglob("*")):
        if path.suffix in PICTURES:
            stage.write(str(path.relative_to(DOCS)), path.read_bytes())
    for file in sorted(sources):
        write_source(stage, file)


def pages() -> Iterator[tuple[str, str]]:
    """Yield the Markdown files of the tree, and their places in the site."""
    for path in sorted((*DOCS.rglob("*.md"), *(ROOT / "models").rglob("*.md"))):
        file = str(path.relative_to(ROOT))
        yield file, place_of(file)
    yield from ((file, place) for file, place in ELSEWHERE.items() if file.endswith(".md"))


def contents(index: str) -> str:
    """Return the first page with the reference in its list, and with Sphinx's lists of the pages to which it links."""
    index = index.replace(f"- [{AFTER_WRITTEN}]", f"{WRITTEN}- [{AFTER_WRITTEN}]")
    lists = ""
    for section in index.split("\n## ")[1:]:
        title, _, rest = section.partition("\n")
        lists += toctree(title, re.findall(r"^- \[[^]]+\]\(([^)#]+)\)", rest, re.MULTILINE))
    return index + lists


def each_model() -> list[str]:
    folder = ROOT / "models"
    return sorted(str(path.relative_to(folder)) for path in folder.glob("*/**/README.md"))


def toctree(caption: str, places: Iterable[str]) -> str:
    return "\n".join(
        ["", ":::{toctree}", ":hidden:", *([f":caption: {caption}"] if caption else []), "", *places, ":::", ""]
    )


def place_of(file: str) -> str:
    """Return where in the site a file of the tree is."""
    if file in ELSEWHERE:
        return ELSEWHERE[file]
    if file.startswith("docs/"):
        return file.removeprefix("docs/")
    return file if file.endswith(".md") else f"sources/{file}.md"


def with_links(file: str, place: str, sources: set[str]) -> str:
    """Return the text of a page with its links rewritten, and add the source files to which it links to ``sources``."""

    def rewritten(link: re.Match[str]) -> str:
        target = os.path.normpath(PurePosixPath(file).parent / link[1])
        if not (ROOT / target).exists():
            return str(link[0])  # Sphinx says so
        there = place_of(target)
        if there.startswith("sources/"):
            sources.add(target)
        return os.path.relpath(there, PurePosixPath(place).parent) + (link[2] or "")

    parts = FENCE.split((ROOT / file).read_text())
    return "".join(part if part.startswith("```") else LINK.sub(rewritten, part) for part in parts)


def write_source(stage: Stage, file: str) -> None:
    """Write a page that shows a source file, or all those of a directory."""
    path = ROOT / file
    members = sorted(each for each in path.iterdir() if each.is_file()) if path.is_dir() else [path]
    text = ["---", "orphan: true", "---", "", f"# {file}", ""]
    for member in members:
        if path.is_dir():
            text += [f"## {member.name}", ""]
        text += [f"````{LANGUAGES.get(member.suffix, 'text')}", member.read_text().rstrip(), "````", ""]
    stage.write(place_of(file), "\n".join(text))
