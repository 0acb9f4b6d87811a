"""The rooms: who may include or import whom, and what each room keeps out."""

from __future__ import annotations

import ast
import itertools
import re
import sys
from pathlib import Path

import pytest

import queueduct

ROOT = Path(__file__).parent.parent
NATIVE = ROOT / "native"
PACKAGE = ROOT / "src" / "queueduct"
LINE_LIMIT = 450

# What stands further right may use what stands further left in the same line, and what that may use.
NATIVE_ORDER = """
core < segment < ring < bounded < growing < verification
segment < events < verification
segment < overwriting < verification
segment < slots < verification
bounded, events, overwriting < cpp < native
"""
PYTHON_ORDER = """
_version, headers, stats < errors, lease, async_calls < native < arrow < items < segments < core < watching
watching < rings, events, overwriting, slots
rings, events, overwriting, slots < index
index < multiprocessing, queue, pool < __init__ < monitoring
monitoring < logging, torch, recording, spark, verification, web < demo < cli
arrow < formats < cli
"""
SPARK_ORDER = """
convert < java, options, private, ending, checkpoint, address, times < sessions < read, write < datasource < pipelines
pipelines < __init__
"""
FILES_LIMIT = 15


def rules_of(order):
    """Of each name in the lines of an order: all that it may use."""
    direct = {}
    for line in order.strip().splitlines():
        steps = [step.split(", ") for step in line.split(" < ")]
        for names in steps:
            for name in names:
                direct.setdefault(name, set())
        for lower, upper in itertools.pairwise(steps):
            for name in upper:
                direct[name] |= set(lower)

    def below(name):
        return direct[name].union(*map(below, direct[name]))

    return {name: below(name) for name in direct}


NATIVE_RULES, PYTHON_RULES, SPARK_RULES = map(rules_of, (NATIVE_ORDER, PYTHON_ORDER, SPARK_ORDER))


def may_use(rules, mine, theirs):
    for name in (mine, theirs):
        assert name in rules, f"{name!r} has no place in the orders of {Path(__file__).name}: where does it belong?"
    return theirs in rules[mine]


def without_comments(path):
    return re.sub(r"//.*", "", path.read_text())


HEADERS = sorted(NATIVE.rglob("*.hpp"))
# What a C++ program calls: it opens files, holds memory and throws, as src/queueduct/ does for Python.
FACADE = {NATIVE / "queueduct.hpp", *(NATIVE / "cpp").rglob("*.hpp")}
CORE_HEADERS = [header for header in HEADERS if header not in FACADE]
MODULES = sorted(path for path in PACKAGE.rglob("*") if path.suffix in (".py", ".pyx", ".pxd"))


def name_of(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("header", HEADERS, ids=name_of)
def test_native_headers_include_only_downwards(header):
    own = header.parent.name
    for included in re.findall(r'^#include "([^"]+)"', header.read_text(), re.MULTILINE):
        folder = included.split("/")[0]
        assert (NATIVE / included).exists(), f"{header} includes {included}: a path below native/ is meant"
        assert folder == own or may_use(NATIVE_RULES, own, folder), f"{own} includes {included}"


@pytest.mark.parametrize("header", CORE_HEADERS, ids=name_of)
def test_native_headers_know_no_python_no_exceptions_and_no_allocation(header):
    code = without_comments(header)
    assert "Python.h" not in code
    assert "Cython" not in code
    for word in ("throw", "try", "catch", "malloc", "calloc", "realloc", "aligned_alloc", "make_unique", "make_shared"):
        assert not re.search(rf"\b{word}\b", code), word
    for allocation in re.findall(r"\bnew\b\s*(\S)", re.sub(r"#include <new>", "", code)):
        assert allocation == "(", "only placement new: memory is given, never taken"
    for container in ("vector", "string", "map", "unordered_map", "deque", "function", "unique_ptr", "shared_ptr"):
        assert f"std::{container}<" not in code
        assert f"#include <{container}>" not in code


@pytest.mark.parametrize("header", sorted(FACADE), ids=name_of)
def test_the_headers_for_cpp_programs_know_no_python(header):
    assert not re.search(r"Python\.h|Cython|numpy/", without_comments(header))


@pytest.mark.parametrize("header", HEADERS, ids=name_of)
def test_native_headers_open_with_what_they_are(header):
    assert header.read_text().startswith("// "), "a header opens with a comment that says what it is"
    assert "#pragma once" in header.read_text()


def test_the_platform_header_includes_the_standard_library_only():
    assert not re.search(r'#include "', (NATIVE / "core" / "platform.hpp").read_text())


def imports_of(path):
    """Modules that a module imports, in full, wherever in the file, but for types."""
    text = re.sub(r"\(\s*([^)]*?)\s*\)", lambda found: "(" + " ".join(found[1].split()) + ")", path.read_text())
    text = re.sub(r"^if TYPE_CHECKING:\n(?:[ \t]+.*\n|\n)+", "", text, flags=re.MULTILINE)
    for line in text.splitlines():
        if found := re.match(r" *from ([\w.]+) c?import (.+)", line):
            for name in re.findall(r"(\w+)(?: as \w+)?", found[2]):
                inner = f"{found[1]}.{name}"
                yield inner if is_ours(inner) else found[1]
        elif found := re.match(r" *c?import ([\w., ]+)", line):
            yield from (name.split(" as ")[0].strip() for name in found[1].split(","))


def is_ours(module):
    path = ROOT / "src" / Path(*module.split("."))
    return path.is_dir() or any(path.with_suffix(suffix).exists() for suffix in (".py", ".pyx", ".pxd"))


def room_of(module, depth):
    """The folder at that depth, or the module: `queueduct.spark.read.stream` is in `spark`, then in `read`."""
    parts = module.split(".")
    return parts[depth] if len(parts) > depth else "__init__"


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_python_modules_import_only_downwards(module):
    own = ".".join(module.relative_to(ROOT / "src").with_suffix("").parts)
    for imported in imports_of(module):
        if imported.split(".")[0] != "queueduct":
            continue
        for depth, rules in ((1, PYTHON_RULES), (2, SPARK_RULES)):
            mine, theirs = room_of(own, depth), room_of(imported, depth)
            if mine != theirs:
                assert may_use(rules, mine, theirs), f"{own} imports {imported}"
                break
            if mine != "spark":
                break


@pytest.mark.parametrize(
    ("library", "home"),
    [
        ("mmap", {"segments"}),
        ("pickle", {"items"}),
        ("ast", {"items"}),
        ("click", {"cli"}),
        ("pyarrow", {"arrow", "formats", "recording", "spark", "verification", "demo"}),
        ("torch", {"torch.py"}),
        ("prometheus_client", {"web"}),
        ("rich", {"cli", "spark", "verification", "demo"}),
        ("pyspark", {"spark", "demo", "verification"}),
    ],
)
def test_each_outside_library_has_its_home(library, home):
    users = [module for module in MODULES if any(name.split(".")[0] == library for name in imports_of(module))]
    assert {module.relative_to(PACKAGE).parts[0] for module in users} <= home


def test_the_directory_of_queues_is_read_from_the_environment_in_one_place_and_written_nowhere():
    users = {name_of(module) for module in MODULES if re.search(r"(environ|env).*QUEUEDUCT_DIR", module.read_text())}
    assert users == {"src/queueduct/segments/names.py"}
    assert 'environ["QUEUEDUCT_DIR"]' not in (PACKAGE / "segments" / "names.py").read_text()


@pytest.mark.parametrize("library", ["pyspark", "py4j", "queueduct.spark"])
def test_of_verification_only_on_spark_knows_spark(library):
    room = PACKAGE / "verification"
    users = [module for module in MODULES if any(f"{name}.".startswith(f"{library}.") for name in imports_of(module))]
    users = [module for module in users if module.is_relative_to(room)]
    assert all(module.is_relative_to(room / "check" / "on_spark") for module in users)


@pytest.mark.parametrize("root", [NATIVE, PACKAGE], ids=name_of)
def test_no_folder_is_crowded(root):
    for folder in (root, *(path for path in root.rglob("*") if path.is_dir() and path.name != "__pycache__")):
        files = [path.name for path in folder.iterdir() if path.is_file()]
        assert len(files) <= FILES_LIMIT, f"{name_of(folder)} holds {len(files)} files"


def test_the_map_has_a_line_for_each_folder_and_for_no_other():
    page = (ROOT / "docs" / "architecture.md").read_text()
    drawn = re.findall(
        r"^((?:native|src/queueduct)/\S*) ", re.search(r"```text\n(native/.*?)```", page, re.DOTALL)[1], re.M
    )
    rooms = {f"{name_of(path.parent)}/" for path in (*HEADERS, *MODULES)}
    assert sorted(drawn) == sorted(rooms)


def test_nothing_is_called_utils_common_or_helpers():
    for folder in ("src", "native", "tests", "benchmarks", "models", "tools"):
        for path in (ROOT / folder).rglob("*"):
            assert path.stem not in ("util", "utils", "common", "helper", "helpers", "misc"), path


def test_no_file_is_so_long_that_a_concept_must_be_missing():
    for folder in ("src", "native", "tests", "models", "benchmarks", "tools"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".pyx", ".pxd", ".pyi", ".hpp", ".cpp", ".sh"):
                lines = len(path.read_text().splitlines())
                assert lines <= LINE_LIMIT, f"{path.relative_to(ROOT)} has {lines} lines"


def public_members(cls):
    for base in cls.__mro__:
        if base.__module__.startswith("queueduct"):
            yield from ((base, name, value) for name, value in vars(base).items() if not name.startswith("_"))


def test_no_line_is_wider_than_120_columns():
    endings = {".py", ".pyi", ".pyx", ".pxd", ".hpp", ".cpp", ".c", ".js", ".build"}
    folders = [ROOT / name for name in ("native", "src", "tests", "models", "benchmarks", "examples", "tools")]
    sources = [path for folder in folders for path in folder.rglob("*") if path.suffix in endings]
    assert len(sources) > 500
    wide = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sources
        if not path.name.startswith("uPlot")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > 120
    ]
    assert wide == []


def test_every_public_thing_says_what_it_does():
    for name in queueduct.__all__:
        thing = getattr(queueduct, name)
        if name in ("__version__",):
            continue
        assert thing.__doc__, name
        if isinstance(thing, type):
            for base, member, value in public_members(thing):
                if (
                    callable(value)
                    or isinstance(value, (property, classmethod))
                    or type(value).__name__ == "getset_descriptor"
                ):
                    assert getattr(base, member).__doc__ or getattr(value, "__doc__", None), f"{name}.{member}"


def test_the_public_names_are_exactly_those_in_all():
    visible = {name for name in vars(queueduct) if not name.startswith("_")}
    modules = {path.stem for path in PACKAGE.iterdir()}
    assert visible - modules | {"open"} == {name for name in queueduct.__all__ if not name.startswith("_")}


def typed_members(cls):
    """What its stub says that a class has. A module of Python needs none; a private base is in its heir's."""
    stub = ROOT / "src" / Path(*cls.__module__.split(".")).with_suffix(".pyi")
    if not stub.exists():
        return vars(cls) if sys.modules[cls.__module__].__file__.endswith(".py") else []
    (found,) = [node for node in ast.parse(stub.read_text()).body if getattr(node, "name", "") == cls.__name__]
    return [node.name for node in found.body if isinstance(node, ast.FunctionDef)]


@pytest.mark.parametrize("name", [name for name in queueduct.__all__ if isinstance(getattr(queueduct, name), type)])
def test_the_type_stubs_name_every_public_member_and_no_other(name):
    bases = [base for base in getattr(queueduct, name).__mro__ if base.__module__.startswith("queueduct")]
    typed = {member for base in bases for member in typed_members(base) if not member.startswith("_")}
    assert typed == {member for base in bases for member in vars(base) if not member.startswith("_")}


def test_the_changelog_knows_the_version():
    assert re.search(
        rf"^## \[?{re.escape(queueduct.__version__)}\]?", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )


def test_the_installed_version_is_the_one_in_the_source():
    source = (PACKAGE / "_version.py").read_text()
    assert f'__version__ = "{queueduct.__version__}"' in source
