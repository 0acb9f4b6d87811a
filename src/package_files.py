"""Lists what meson builds and installs of this directory, one path a line: folders, sources, or modules FOLDER."""

import sys
from pathlib import Path

ROOT = Path(__file__).parent
INSTALLED = (".py", ".pyi", ".typed", ".html", ".js", ".css", ".json", ".txt", ".svg")


def folders() -> list[str]:
    """Folders with extension modules of their own."""
    return sorted({path.parent.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.pyx")})


def sources() -> list[str]:
    """Files that are installed as they are."""
    found = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.suffix in INSTALLED)
    return sorted(path.as_posix() for path in found if path.name != Path(__file__).name)


def modules(folder: str) -> list[str]:
    """The extension modules of a folder."""
    return sorted(path.stem for path in Path(folder).glob("*.pyx"))


if __name__ == "__main__":
    asked, *arguments = sys.argv[1:]
    print("\n".join({"folders": folders, "sources": sources, "modules": modules}[asked](*arguments)))
