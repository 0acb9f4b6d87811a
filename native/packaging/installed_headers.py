"""The headers that a C or C++ program includes: ``list`` them, or copy one: ``copy HEADER TO``.

In native/ an include names a path below native/. The copies name each other by relative paths: so a program needs one
include path, and a ``core/`` or ``events/`` of its own cannot come between.
"""

import os
import re
import sys
from pathlib import Path

NATIVE = Path(__file__).parents[1]
ENTRIES = ("queueduct.hpp", "overwriting/published.h")
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


def needed(entries: tuple[str, ...]) -> list[str]:
    """Returns the entries and all that they include."""
    found: set[str] = set()
    left = list(entries)
    while left:
        if (header := left.pop()) not in found:
            found.add(header)
            left += INCLUDE.findall((NATIVE / header).read_text())
    return sorted(found)


def with_relative_includes(header: str) -> str:
    folder = os.path.dirname(header) or "."
    return INCLUDE.sub(lambda found: f'#include "{os.path.relpath(found[1], folder)}"', (NATIVE / header).read_text())


if __name__ == "__main__":
    asked, *arguments = sys.argv[1:]
    if asked == "list":
        print("\n".join(needed(ENTRIES)))
    else:
        header, target = arguments
        Path(target).write_text(with_relative_includes(header))
