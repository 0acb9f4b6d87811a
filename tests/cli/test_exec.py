"""get --exec: a command for each item, without a shell; what fails comes again, or is a dead letter."""

from __future__ import annotations

import json

import numpy as np
import pytest

import queueduct
from tests.support.command import refused, shell
from tests.support.kinds import CLASSES

CONSUMED = [kind for kind in CLASSES if kind != "events"]


@pytest.fixture
def jobs():
    with queueduct.BoundedQueue.create("jobs", 64) as made:
        yield made


def run(line, code=0):
    found = shell(f"queueduct {line}")
    assert found.returncode == code, found.stderr
    return found


def test_the_item_is_an_argument_or_a_file_or_stdin(jobs):
    jobs.put_many([b"one", b"two words", b"three", b"four"])
    assert run("get jobs --exec 'echo <{}>'").stdout == "<one>\n"
    assert run("get jobs --exec 'printf %s-%s-%s {} {position} {deliveries}'").stdout == "two words-1-1"
    assert run("get jobs --exec 'cat {file}'").stdout == "three"
    assert run("get jobs --exec 'wc -c'").stdout.strip() == "4"
    assert (jobs.qsize(), jobs.stats().items_got) == (0, 4)


def test_an_item_is_never_read_as_a_part_of_the_command(jobs, tmp_path):
    evil = [b"; touch pwned", b"$(touch pwned)", b"{file}", b"-n", b"a\nb", b"\xff\xfe"]
    jobs.put_many(evil)
    command = "get jobs --available --lease --exec 'printf %s\\\\0 {}'"
    found = shell(f"queueduct {command} | tee told | tr -d '\\0' > /dev/null", tmp_path)
    assert found.returncode == 0, found.stderr
    assert (tmp_path / "told").read_bytes().split(b"\0")[:-1] == evil
    assert [path.name for path in tmp_path.iterdir()] == ["told"]


def test_records_are_their_line_of_json():
    with queueduct.BoundedQueue.create("ticks", 4, item=np.dtype([("sym", "S8"), ("px", "f8")])) as ticks:
        ticks.put((b"A", 1.5))
        assert json.loads(run("get ticks --exec cat").stdout) == {"sym": "A", "px": 1.5}


def test_the_first_failure_ends_get_and_a_leased_item_comes_again(jobs):
    jobs.put_many([b"a", b"b"])
    failed = run("get jobs -n 2 --lease --exec false", code=1)
    assert "position 0: false ended with exit code 1; it is in the queue again; 0 were done before" in failed.stderr
    assert jobs.qsize() == 2
    failed = run("get jobs -n 2 --exec 'sh -c \"kill -9 $$\"'", code=1)
    assert "ended with signal 9; it was taken, and is gone" in failed.stderr
    assert jobs.qsize() == 1


@pytest.mark.parametrize("kind", CONSUMED)
def test_an_item_that_fails_in_every_try_is_a_dead_letter(kind, tmp_path):
    tries = tmp_path / "tries"
    with CLASSES[kind].create("q", item="i8") as queue:
        queue.put_many([7, 8])
        script = f'sh -c "echo $0 >> {tries}; test $0 != 7" {{}}'
        failed = run(f"get q --available --lease --retries 3 --retry-delay 1ms --exec '{script}'", code=1)
        assert "1 of 2 items failed in every try, and are dead letters" in failed.stderr
        assert (queue.qsize(), queue.stats().leased) == (0, 0)
    assert tries.read_text().split() == ["7", "7", "7", "8"]
    with queueduct.open("q.dead") as letters:
        letter = letters.get_nowait()
        assert (letter.item, letter.tries, letter.error_type) == (7, 3, "CommandFailed")
        assert "sh ended with exit code 1" in letter.message
        assert letters.empty()


def test_deliveries_before_a_kill_count_as_tries(jobs, tmp_path):
    jobs.put(b"a")
    for _ in range(2):
        jobs.lease(1).give_back()
    script = f'sh -c "echo x >> {tmp_path}/tries; false"'
    run(f"get jobs --lease --retries 3 --exec '{script}'", code=1)
    assert (tmp_path / "tries").read_text() == "x\n"
    with queueduct.open("jobs.dead") as letters:
        assert letters.get_nowait().item == b"a"


def test_a_nul_in_an_argument_is_a_failure_that_says_what_to_do(jobs):
    jobs.put(b"a\0b")
    told = refused("get", "jobs", "--lease", "--exec", "echo {}", code=1)
    assert "has a NUL, which no argument can have: use {file} or stdin" in told
    assert jobs.qsize() == 1
    assert run("get jobs --exec 'wc -c {file}'").stdout.split()[0] == "3"
