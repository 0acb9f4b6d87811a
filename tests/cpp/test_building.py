"""The installed headers are enough: by one line, by CMake, by pkg-config, beside a user's own folders."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import queueduct
from tests.support.compiled import CPP, INCLUDE, ROOT, C, compiled, run, with_cache
from tests.support.deadline import until

EXAMPLE = ROOT / "examples" / "cpp"
TICK = np.dtype([("symbol", "S8"), ("price", "f8"), ("received", "M8[ns]"), ("size", "u4")], align=True)
LINES = "ACME 101.5 100\nno tick\nBOLT 7 5\nTOOLONGNAME 1 1\n"


@pytest.fixture(scope="session")
def feed_handler() -> Path:
    return compiled(EXAMPLE / "feed_handler.cpp")


def quick(compiler):
    return tuple("-O0" if flag == "-O1" else flag for flag in compiler)


@pytest.mark.parametrize("kind", ["BoundedQueue", "EventQueue", "OverwritingQueue"])
def test_the_example_puts_what_it_reads(feed_handler, kind):
    sizes = {} if kind == "EventQueue" else {"capacity": 8}
    with getattr(queueduct, kind).create("ticks", item=TICK, **sizes) as q:
        reader = q.subscribe() if kind == "EventQueue" else q
        assert run(feed_handler, "ticks", stdin=LINES) == "2 ticks put, 2 lines refused\n"
        found = reader.get_many(9)
    assert found[["symbol", "price", "size"]].tolist() == [(b"ACME", 101.5, 100), (b"BOLT", 7.0, 5)]
    assert np.all(abs(found["received"] - np.datetime64("now")) < np.timedelta64(1, "h"))


def test_the_example_ends_on_a_signal_while_the_queue_is_full(feed_handler):
    with queueduct.BoundedQueue.create("ticks", 1, item=TICK) as q:
        process = subprocess.Popen([feed_handler, "ticks"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        process.stdin.write("ACME 1 1\n" * 3)
        process.stdin.flush()
        until(lambda: q.stats().waits_for_room or q.full(), "it waits for room")
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=30)
    assert (process.returncode, out) == (0, "1 ticks put, 0 lines refused\n")


def test_the_example_says_what_is_wrong(feed_handler):
    done = subprocess.run([feed_handler, "ticks"], capture_output=True, text=True, check=False, input="")
    assert (done.returncode, "there is no queue named 'ticks'" in done.stderr) == (1, True)


def test_the_package_holds_every_header_that_is_needed_and_no_other():
    entries = {"queueduct.hpp", "overwriting/published.h"}
    root = INCLUDE / "queueduct"
    found = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    included = set()
    for header in found:
        for name in re.findall(r'#include "([^"]+)"', (root / header).read_text()):
            included.add((root / header).parent.joinpath(name).resolve().relative_to(root.resolve()).as_posix())
    assert found == included | entries


def test_no_folder_of_a_user_comes_between(tmp_path):
    """A program may have a core/platform.hpp of its own, and its folder before ours."""
    for name in ("core/platform.hpp", "cpp/queues.hpp", "segment/event.hpp", "ring/ring.hpp"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("#error this is the user's own\n")
    source = tmp_path / "main.cpp"
    source.write_text("#include <queueduct/queueduct.hpp>\nint main() {}\n")
    subprocess.run(
        [*CPP[:2], "-E", "-o", "/dev/null", f"-I{tmp_path}", f"-I{INCLUDE}", source], check=True, timeout=100
    )


def test_cmake_finds_the_package(tmp_path):
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed: with it this test builds the example")
    found = subprocess.run(
        ["cmake", "-S", EXAMPLE, "-B", tmp_path, f"-Dqueueduct_DIR={queueduct.get_cmake_dir()}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    subprocess.run(["cmake", "--build", tmp_path], check=True, capture_output=True, timeout=110)
    queueduct.OverwritingQueue.create("ticks", 8, item=TICK).close()
    assert run(tmp_path / "feed_handler", "ticks", stdin=LINES) == "2 ticks put, 2 lines refused\n"


@pytest.mark.parametrize(("asked", "is_found"), [("0.1", True), ("0.2", False), ("1.0", False)])
def test_cmake_finds_it_by_its_prefix_and_compares_versions(tmp_path, asked, is_found):
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed: with it this test looks for the package")
    (tmp_path / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.20)\nproject(p CXX)\nfind_package(queueduct {asked} CONFIG REQUIRED)\n"
    )
    prefix = f"-DCMAKE_PREFIX_PATH={queueduct.get_cmake_dir()}"
    done = subprocess.run(["cmake", "-S", tmp_path, "-B", tmp_path / "b", prefix], capture_output=True, check=False)
    assert (done.returncode == 0) == is_found, done.stderr


def test_pkg_config_finds_the_package(monkeypatch):
    if shutil.which("pkg-config") is None:
        pytest.skip("pkg-config is not installed: with it this test asks for the flags")
    monkeypatch.setenv("PKG_CONFIG_PATH", queueduct.get_pkgconfig_dir())
    version, flags = (
        subprocess.check_output(["pkg-config", asked, "queueduct"], text=True).strip()
        for asked in ("--modversion", "--cflags")
    )
    assert version == queueduct.__version__
    (include,) = re.findall(r"-I(\S+)", flags)
    assert Path(include).resolve() == INCLUDE.resolve()
    assert "-pthread" in flags


PAGE = (ROOT / "docs" / "cpp.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def saved(folder, block):
    """A block begins with the name of its file."""
    path = folder / re.match(r"(?://|#) (\S+)\n", block)[1]
    path.write_text(block)
    return path


def python(path):
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_programs_of_the_page_run_and_run_again(tmp_path, queue_dir):
    make, read = (saved(tmp_path, block) for block in blocks("python"))
    _, both = (saved(tmp_path, block) for block in blocks("cpp"))
    both = compiled(both, compiler=quick(CPP))
    (lines,) = blocks("sh")  # of the producer
    line = lines.splitlines()[0]
    command = " ".join([*with_cache(), line.replace("-O2", "-O0").replace("python", sys.executable)])
    subprocess.run(command, shell=True, cwd=tmp_path, check=True, timeout=100)
    (in_c,) = (compiled(saved(tmp_path, block), compiler=C) for block in blocks("c"))
    tick = np.dtype([("symbol", "S8"), ("price", "f8")])
    with (
        queueduct.BoundedQueue.create("jobs", 16) as jobs,
        queueduct.OverwritingQueue.create("newest", 4, item=tick) as newest,
    ):
        for _ in range(2):
            python(make)
            run(tmp_path / "producer")
            assert python(read) == "1001 101.5\n"
            assert run(both) == "1 2\nresize cat.png\nresize dog.png\n"
            run(in_c, queue_dir / "newest")
            assert newest.get().tolist() == (b"ACME", 101.5)
        assert jobs.empty()


def test_the_page_names_every_class_and_error():
    names = re.findall(
        r"^struct (\w+) : (?:Error|std::runtime_error)", (INCLUDE / "queueduct/cpp/errors.hpp").read_text(), re.M
    )
    assert len(names) == 7
    classes = re.findall(r"^class (\w+) : public", (INCLUDE / "queueduct/cpp/queues.hpp").read_text(), re.M)
    assert {"BoundedQueue", "EventQueue", "OverwritingQueue", "Writer"} <= set(classes)
    for name in (*names, *classes):
        assert name in PAGE, name
