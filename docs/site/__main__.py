"""Builds the site, and checks its links: ``python -m docs.site``, or with another directory than build/docs."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from docs.site import api, command, links
from docs.site.stage import ROOT, Stage, collect

HERE = Path(__file__).parent


def build(out: Path) -> list[str]:
    """Build the site; return what is wrong with it, after what Sphinx has printed."""
    pages = beside(out, "pages")
    stage = Stage(pages)
    collect(stage)
    api.write(stage)
    command.write(stage)
    stage.remove_the_rest()
    if stage.changed:  # Sphinx would leave what a page no longer links to, and pages that are gone
        for made in (out, beside(out, "trees")):
            shutil.rmtree(made, ignore_errors=True)
    if not run_sphinx(pages, out):
        return [f"the site has warnings; {pages} has copies of the pages of {ROOT / 'docs'}"]
    return links.problems(out)


def run_sphinx(pages: Path, out: Path) -> bool:
    """Build pages; every warning is an error."""
    from sphinx.cmd.build import build_main

    options = ["-q", "-W", "--keep-going", "-b", "html", "-c", str(HERE), "-d", str(beside(out, "trees"))]
    return build_main([*options, str(pages), str(out)]) == 0


def beside(out: Path, what: str) -> Path:
    return out.with_name(f"{out.name}-{what}")


def main() -> None:
    out = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / "build" / "docs"
    if found := build(out):
        sys.exit("\n".join(found))
    print(out / "index.html")


if __name__ == "__main__":
    main()
