"""Finds the links of built pages that lead nowhere, and whatever a page would load from another host. Offline."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {  # what a browser fetches by itself, without a click
    "img": ("src", "srcset"),
    "script": ("src",),
    "link": ("href",),
    "iframe": ("src",),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "audio": ("src",),
    "object": ("data",),
    "embed": ("src",),
    "input": ("src",),
    "use": ("href", "xlink:href"),
    "image": ("href", "xlink:href"),
}
IN_STYLES = re.compile(r"""(?:url\(\s*|@import\s+)["']?([^"')\s;]+)""")
IN_SCRIPTS = re.compile(r"""(?:fetch|import|importScripts|EventSource|WebSocket)\(\s*["'`]((?:https?:)?//[^"'`]+)""")
NO_FILE = ("http", "https", "mailto", "data", "javascript")


@dataclass
class Page(HTMLParser):
    """The anchors of a page, where its links lead, and what it loads."""

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    inside: str = ""

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        self.inside = tag
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        for name in LOADED.get(tag, ()):
            if name in given and given.get("rel") not in ("next", "prev", "search", "index"):
                self.loaded += [each.split()[0] for each in given[name].split(",") if each.strip()]
        self.loaded += IN_STYLES.findall(given.get("style", ""))

    def handle_data(self, data: str) -> None:
        if self.inside == "style":
            self.loaded += IN_STYLES.findall(data)
        elif self.inside == "script":
            self.loaded += IN_SCRIPTS.findall(data)

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""


def read(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text())
    page.close()
    return page


def problems(site: Path) -> list[str]:
    """Return a line for each broken link, and for each file that comes from another host or is not there."""
    pages = {path: read(path) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        where = path.relative_to(site)
        for link in page.links:
            found += [f"{where}: {reason}" for reason in broken(link, path, pages)]
        for loaded in page.loaded:
            found += [f"{where}: {reason}" for reason in foreign(loaded, path)]
    for path in sorted(site.rglob("*.css")):
        for loaded in IN_STYLES.findall(path.read_text()):
            found += [f"{path.relative_to(site)}: {reason}" for reason in foreign(loaded, path)]
    for path in sorted(site.rglob("*.js")):
        found += [f"{path.relative_to(site)}: loads {each}" for each in IN_SCRIPTS.findall(path.read_text())]
    return found


def broken(link: str, path: Path, pages: dict[Path, Page]) -> list[str]:
    parts = urlsplit(link)
    if parts.scheme in NO_FILE:
        return []
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.is_file():
        return [f"links to {link}, which is not there"]
    anchor = unquote(parts.fragment)
    if anchor and target in pages and anchor not in pages[target].anchors:
        return [f"links to {link}, which has no such heading"]
    return []


def foreign(loaded: str, path: Path) -> list[str]:
    parts = urlsplit(loaded)
    if parts.scheme == "data":
        return []
    if parts.scheme or parts.netloc:
        return [f"loads {loaded} from another host"]
    if parts.path and not (path.parent / unquote(parts.path)).resolve().is_file():
        return [f"loads {loaded}, which is not there"]
    return []
