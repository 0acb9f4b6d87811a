"""The rooms: who may include or import whom, and what each room keeps out."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import queueduct

ROOT = Path(__file__).parent.parent
NATIVE = ROOT / "native"
PACKAGE = ROOT / "src" / "queueduct"
LINE_LIMIT = 480

# Each may include only what stands in a row above its own. A new header needs a row.
NATIVE_ROWS = [
    {"platform"},
    {"layout", "failpoint", "fault_guard", "file_size", "buffer", "thread_number", "hand_back", "handover"},
    {"lock_file"},
    {"wait", "ledger", "roster", "events_layout", "overwriting_layout", "growing_layout", "index_queue"},
    {"patience", "rest", "owner", "owner_lock", "events_chunks", "bounded"},
    {"overwriting_lock", "slots_layout", "history", "events_boot", "events_disk"},
    {"events_blocks"},
    {"stress_worker", "history_reader"},
    {"producers", "events_readers", "bounded_items", "bounded_claims", "overwriting_memory", "slots"},
    {
        "events_repair",
        "events_cursor",
        "bounded_producers",
        "overwriting_shelf",
        "slots_producers",
        "growing",
        "growing_looks",
    },
    {"events_log", "bounded_recovery", "overwriting", "slots_recovery", "growing_memory", "growing_moments"},
    {
        "events_producers",
        "bounded_queue",
        "overwriting_queue",
        "growing_flow",
        "growing_keeper",
        "growing_outside",
        "slots_queue",
    },
    {"bounded_lease", "overwriting_lease", "slots_lease"},
    {"events_queue", "growing_queue", "growing_local"},
    {"growing_lease"},
    {"stress_bounded", "stress_events", "stress_growing", "stress_overwriting", "stress_slots"},
]

# Each may import only what stands in a row above its own. A new module needs a row.
PYTHON_ROWS = [
    {"_version", "errors", "stats", "views", "keeper", "boot", "_layout", "_mapping", "_native", "_kinds", "lease"},
    {"_history_native", "_exact"},
    {"_history"},
    {"_slots_layout", "_slots_native"},
    {"items", "_aio", "_buffers", "_events_native", "_overwriting_native", "_growing_native"},
    {"geometry", "_batches", "_objects"},
    {"bounded_geometry", "events_geometry", "overwriting_geometry", "slots_geometry", "growing_geometry"},
    {"geometries"},
    {"segment"},
    {"_queue", "_guard", "adopting", "creating"},
    {"_mapped", "_index"},
    {"_claiming", "_events_log", "_overwriting_objects"},
    {"_ring_objects"},
    {
        "_bounded_local",
        "_bounded_shared",
        "_events_body",
        "_overwriting_body",
        "_slots_body",
        "_growing_local",
        "_growing_shared",
    },
    {
        "_bounded_once",
        "_bounded_lease",
        "_events_fetch",
        "_events_held",
        "_overwriting_lease",
        "_slots_evicting",
        "_slots_lease",
    },
    {"_slots_leasing", "_slots_once", "_events_boot", "_events_once"},
    {"_events_place"},
    {"_bounded", "_events_reader", "_overwriting", "_slots", "_growing"},
    {"_events"},
    {"_stress_native"},
    {"_stress"},
    {"opening"},
    {"__init__"},
    {"demo"},
]


def level_of(rows, name):
    for level, row in enumerate(rows):
        if name in row:
            return level
    pytest.fail(f"{name!r} has no row in {Path(__file__).name}: where does it belong?")


def without_comments(path):
    return re.sub(r"//.*", "", path.read_text())


HEADERS = sorted(NATIVE.glob("*.hpp"))
MODULES = sorted(path for path in PACKAGE.iterdir() if path.suffix in (".py", ".pyx"))


@pytest.mark.parametrize("header", HEADERS, ids=lambda path: path.name)
def test_native_headers_include_only_downwards(header):
    level = level_of(NATIVE_ROWS, header.stem)
    for included in re.findall(r'^#include "(\w+)\.hpp"', header.read_text(), re.MULTILINE):
        assert level_of(NATIVE_ROWS, included) < level, f"{header.name} includes {included}.hpp"


@pytest.mark.parametrize("header", HEADERS, ids=lambda path: path.name)
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


@pytest.mark.parametrize("header", HEADERS, ids=lambda path: path.name)
def test_native_headers_open_with_what_they_are(header):
    assert header.read_text().startswith("// "), "a header opens with a comment that says what it is"
    assert "#pragma once" in header.read_text()


def test_the_platform_header_includes_the_standard_library_only():
    assert not re.search(r'#include "', (NATIVE / "platform.hpp").read_text())


def imports_of(path):
    """Top-level imports of a module, ours by their last name, foreign ones by their first."""
    ours, foreign = set(), set()
    text = re.sub(r"\(\s*([^)]*?)\s*\)", lambda found: "(" + " ".join(found[1].split()) + ")", path.read_text())
    for line in text.splitlines():
        if found := re.match(r"from queueduct(?:\.(\w+))? c?import (.+)", line):
            names = re.findall(r"(\w+)(?: as \w+)?", found[2])
            ours |= {found[1]} if found[1] else {name for name in names if name_is_module(name)}
        elif found := re.match(r"c?import (.+)|from (\w+)", line):
            for name in re.findall(r"(\w+)[\w.]*(?: as \w+)?", found[1] or found[2]):
                (ours if name == "queueduct" else foreign).add("__init__" if name == "queueduct" else name)
    return ours, foreign


def name_is_module(name):
    return any((PACKAGE / f"{name}{suffix}").exists() for suffix in (".py", ".pyx", ".pxd"))


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.name)
def test_python_modules_import_only_downwards(module):
    level = level_of(PYTHON_ROWS, module.stem)
    for imported in imports_of(module)[0]:
        assert level_of(PYTHON_ROWS, imported) < level, f"{module.name} imports {imported}"


@pytest.mark.parametrize(
    ("library", "home"),
    [
        ("mmap", {"segment"}),
        ("pickle", {"items"}),
        ("ast", {"items"}),
        ("click", set()),
        ("pyspark", set()),
    ],
)
def test_each_outside_library_has_one_home(library, home):
    assert {module.stem for module in MODULES if library in imports_of(module)[1]} <= home


def test_only_the_spark_room_imports_pyspark():
    for path in PACKAGE.rglob("*.py"):
        if path.is_relative_to(PACKAGE / "spark") or path.is_relative_to(PACKAGE / "verification/check/on_spark"):
            continue
        assert not re.search(r"^\s*(from|import) (pyspark|py4j)", path.read_text(), re.MULTILINE), path


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
    modules = {path.stem for path in MODULES} | {path.name for path in PACKAGE.iterdir() if path.is_dir()}
    assert visible - modules | {"open"} == {name for name in queueduct.__all__ if not name.startswith("_")}


@pytest.mark.parametrize(
    ("stubs", "classes"),
    [
        (("_queue", "_bounded"), (queueduct.BoundedQueue,)),
        (("_queue", "_events"), (queueduct.EventQueue,)),
        (("_queue", "_growing"), (queueduct.GrowingQueue,)),
        (("_queue", "_overwriting"), (queueduct.OverwritingQueue,)),
        (("_queue", "_slots"), (queueduct.SlotQueue,)),
        (("_slots_lease",), (queueduct.LoanedSlot, queueduct.TakenSlot)),
        (("_index",), (queueduct.IndexQueue,)),
    ],
    ids=lambda given: given[-1] if isinstance(given[0], str) else "",
)
def test_the_type_stubs_name_every_public_member_and_no_other(stubs, classes):
    typed = set()
    for stub in stubs:
        for node in ast.walk(ast.parse((PACKAGE / f"{stub}.pyi").read_text())):
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                typed.add(node.name)
    assert typed == {name for each in classes for _, name, _ in public_members(each)}


def test_the_changelog_knows_the_version():
    assert re.search(
        rf"^## \[?{re.escape(queueduct.__version__)}\]?", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )


def test_the_installed_version_is_the_one_in_the_source():
    source = (PACKAGE / "_version.py").read_text()
    assert f'__version__ = "{queueduct.__version__}"' in source
