"""Kernels whose pages are larger than the layout's: 16 and 64 kB, as on arm64."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.edges.grow_and_shrink import GROW_AND_SHRINK, GROW_AND_SHRINK_LOCALLY
from tests.support.preloading import needs_compiler, preload

pytestmark = needs_compiler
TESTS = Path(__file__).parent.parent
QUICK = [
    "rings/test_growing.py",
    "rings/test_grow_and_shrink.py",
    "events/test_chunks.py",
    "events/test_everybody_sees_all.py",
    "events/test_references.py",
    "events/test_forgetting.py",
]

# Those that hold resident_bytes against what is counted, in the layout's pages: such a kernel gives larger ones.
COUNTING = [
    "test_what_stats_say_adds_up",
    "test_an_empty_queue_is_small",
    "test_memory_follows_what_is_in_it",
    "test_max_bytes_is_never_exceeded",
    "test_eight_workers_through_eight_sizes",
    "gives_its_memory_back",
    "test_a_sub_queue_in_which_something_is_held_is_not_given_back",
    "test_what_a_killed_holder_had_in_every_sub_queue_goes_to_the_next",
]

pages = pytest.mark.parametrize("page", [16384, 65536])

SAID = """
import mmap, os, sys, ctypes
page = int(sys.argv[1])
assert (os.sysconf("SC_PAGESIZE"), mmap.PAGESIZE) == (page, page)
libc = ctypes.CDLL(None, use_errno=True)
memory = mmap.mmap(-1, 4 * page)
at = ctypes.addressof(ctypes.c_char.from_buffer(memory))
assert at % page == 0
assert libc.madvise(ctypes.c_void_p(at + 4096), ctypes.c_size_t(4096), 4) == -1 and ctypes.get_errno() == 22
try:
    mmap.mmap(os.memfd_create("x"), 4096, offset=4096)
except ValueError:
    pass
else:
    raise SystemExit("an offset within a page was taken")

# The same pages a second time: the rest of the last page is reserved, so that munmap takes nothing else with it.
def rest_of_page(begin):
    with open("/proc/self/maps") as maps:
        for line in maps:
            span, rights = line.split()[:2]
            low, high = (int(word, 16) for word in span.split("-"))
            if low <= begin + 4096 < high:
                return rights == "---p" and high >= begin + page
libc.mremap.restype = ctypes.c_void_p
for _ in range(40):
    again = libc.mremap(ctypes.c_void_p(at), ctypes.c_size_t(0), ctypes.c_size_t(4096), 1)
    assert again % page == 0 and ctypes.string_at(again, 4) == bytes(4) and rest_of_page(again)
    assert libc.munmap(ctypes.c_void_p(again), ctypes.c_size_t(4096)) == 0

# One that grows moves as a whole, with what is in it.
fd = os.memfd_create("grows")
os.truncate(fd, 4096)
grown = mmap.mmap(fd, 4096)
grown[:3] = b"abc"
grown.resize(2 * page)
assert ctypes.addressof(ctypes.c_char.from_buffer(grown)) % page == 0 and grown[:3] == b"abc"
print("fine")
"""


@pages
def test_the_shim_answers_as_such_a_kernel_does(monkeypatch, children, page):
    preload(monkeypatch, "pages", PAGE=page)
    assert children.run(SAID, page) == "fine\n"


@pages
def test_queues_within_a_process_grow_and_shrink(monkeypatch, children, page):
    preload(monkeypatch, "pages", PAGE=page)
    assert children.run(GROW_AND_SHRINK_LOCALLY) == "fine\n"


@pages
def test_a_growing_segment_grows_and_shrinks(monkeypatch, children, page):
    """No limit of memory here: it is counted in the layout's pages, and such a kernel gives larger ones."""
    preload(monkeypatch, "pages", PAGE=page)
    assert children.run(GROW_AND_SHRINK, 0) == "fine\n"


@pages
def test_the_quick_tests_of_growing_and_events_hold(monkeypatch, page, tmp_path, is_long):
    preload(monkeypatch, "pages", PAGE=page)
    chosen = ["rings", "events"] if is_long else QUICK
    command = [sys.executable, "-W", "error", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    command += ["-k", f"not ({' or '.join(COUNTING)})"]
    command += ["--basetemp", str(tmp_path / "under"), *(str(TESTS / name) for name in chosen)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=TESTS.parent)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
