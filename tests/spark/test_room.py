"""The room of Spark: who may import whom in it, and that the command line does not wait for Spark."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOM = Path(__file__).parent.parent.parent / "src" / "queueduct" / "spark"

# Each may import only what stands in a row above its own. A new module needs a row.
ROWS = [
    {"java", "options", "types", "progress", "kinds", "private", "ending", "checkpoint"},
    {"staging", "records", "putting"},
    {"starting", "address", "columns"},
    {"spool"},
    {"spans", "drainer"},
    {"attachment", "batch", "sink"},
    {"stream"},
    {"spooled"},
    {"source"},
    {"pipelines.lake"},
    {"pipelines.aggregate", "pipelines.archive"},
    {"pipelines"},
    {"pipelines.running"},
    {"demo.ticks"},
    {"demo.check"},
    {"demo.picture", "demo.plot"},
    {"demo.flow"},
    {"demo"},
    {"commands"},
    {""},
]
MODULES = {
    ".".join(path.relative_to(ROOM).with_suffix("").parts).removesuffix("__init__").rstrip("."): path
    for path in ROOM.rglob("*.py")
}


def level_of(name):
    return next((level for level, row in enumerate(ROWS) if name in row), None)


def imports_of(path):
    """Of this room, wherever in the file they stand, but for types."""
    tree = ast.parse(path.read_text())
    for_types = [node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)]
    left_out = {inner for node in for_types for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node not in left_out and str(node.module).startswith("queueduct.spark"):
            module = str(node.module).removeprefix("queueduct.spark").lstrip(".")
            for name in node.names:
                inner = f"{module}.{name.name}".lstrip(".")
                yield inner if inner in MODULES else module


@pytest.mark.parametrize("name", sorted(MODULES))
def test_modules_import_only_downwards(name):
    assert level_of(name) is not None, f"{name!r} has no row here: where does it belong?"
    for imported in imports_of(MODULES[name]):
        assert level_of(imported) < level_of(name), f"{name} imports {imported}"


def test_the_command_line_and_the_package_do_not_import_spark():
    code = "import sys, queueduct.cli, queueduct.spark; print('pyspark' in sys.modules, 'pyarrow' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "False False\n"
