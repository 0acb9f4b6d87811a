"""Containers that share a directory of queues: each has its own idea of the machine, and nobody loses anything."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import uuid

import pytest

import queueduct
from queueduct import EventQueue
from queueduct.segments.boot import is_kernels_own, kernel_boot_id
from tests.edges.kinds import KINDS, item, number_of
from tests.support.children import environment, needs_root
from tests.support.deadline import PATIENCE_SECONDS, until
from tests.support.raw import RawEvents

pytestmark = needs_root

CONTAINERS = {
    "own boot id": (["-m"], "mount --bind {boot_id} /proc/sys/kernel/random/boot_id"),
    "another's file as boot id": (["-m"], "mount --bind /proc/sys/kernel/random/uuid /proc/sys/kernel/random/boot_id"),
    "no boot id": (["-m", "-p", "-f", "--kill-child"], "mount -t proc -o subset=pid proc /proc"),
    "own processes": (["-m", "-p", "-f", "--kill-child"], "mount -t proc proc /proc"),
    "own boot id and processes": (
        ["-m", "-p", "-f", "--kill-child"],
        "mount -t proc proc /proc && mount --bind {boot_id} /proc/sys/kernel/random/boot_id",
    ),
    "own clock": (["-m", "-T", "-f", "--kill-child", "--boottime", "-1000", "--monotonic", "-1000"], "true"),
    "clock and boot id": (
        ["-m", "-T", "-f", "--kill-child", "--boottime", "100000000"],
        "mount --bind {boot_id} /proc/sys/kernel/random/boot_id",
    ),
}

UNFIT = {"no proc": (["-m"], "mount -t tmpfs tmpfs /proc")}


class Containers:
    """Processes in containers, as one test starts them."""

    def __init__(self, folder) -> None:
        self.folder = folder
        self.started: list[subprocess.Popen[str]] = []

    def start(self, container: str, code: str, *arguments: object) -> subprocess.Popen[str]:
        options, prepare = (CONTAINERS | UNFIT)[container]
        boot_id = self.folder / str(uuid.uuid4())
        boot_id.write_text(f"{uuid.uuid4()}\n")
        if "--boottime" in options and int(options[options.index("--boottime") + 1]) < 0:
            with open("/proc/uptime") as uptime:  # no clock goes below 0
                if float(uptime.read().split()[0]) < 2000:
                    options = [option.replace("-1000", "1000") for option in options]
        command = ["unshare", *options, "sh", "-c", f'{prepare.format(boot_id=boot_id)} && exec "$@"', "sh"]
        process = subprocess.Popen(
            [*command, sys.executable, "-W", "error", "-c", code, *map(str, arguments)],
            env=environment(PYTHONUNBUFFERED="1"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def run(self, container: str, code: str, *arguments: object) -> str:
        process = self.start(container, code, *arguments)
        out, err = process.communicate(timeout=3 * PATIENCE_SECONDS)
        assert (process.returncode, err) == (0, ""), f"exit {process.returncode}\n{out}\n{err}"
        return out

    def stop(self) -> None:
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()


@pytest.fixture
def containers(tmp_path):
    if subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        pytest.skip("this system lets nobody make a mount namespace")
    found = Containers(tmp_path)
    yield found
    found.stop()


@pytest.fixture(params=CONTAINERS)
def container(request):
    options = CONTAINERS[request.param][0]
    if "-T" in options and subprocess.run(["unshare", "-T", "-f", "true"], check=False, capture_output=True).returncode:
        pytest.skip("this system has no time namespaces")
    return request.param


BOTH_WAYS = """
import queueduct
from tests.edges.kinds import KINDS, item, number_of
for kind in KINDS:
    q = queueduct.open(kind)
    print(*(number_of(each) for each in KINDS[kind].consumer(q).get_many(20)))
    for number in range(100, 110):
        q.put(item(number))
"""


def test_what_is_put_in_one_container_is_got_in_the_other(containers, container):
    queues = {kind: KINDS[kind].create(kind) for kind in KINDS}
    for q in queues.values():
        for number in range(10):
            q.put(item(number))
    assert containers.run(container, BOTH_WAYS) == "0 1 2 3 4 5 6 7 8 9\n" * len(KINDS)
    for kind, q in queues.items():
        got = [number_of(each) for each in KINDS[kind].consumer(q).get_many(30)]
        assert got[-10:] == list(range(100, 110)), kind  # a log has the first ten, too, until they are committed
        q.close()


LOOK = "import queueduct; q = queueduct.open('q'); print(q.end, q.earliest, q.epoch); q.put(b'x')"


@pytest.mark.parametrize("place", ["memory", "disk"])
def test_a_log_in_use_is_cut_by_no_container(containers, container, place, request):
    if place == "disk":
        request.getfixturevalue("disk")
    with EventQueue.create("q", sync="never") as q:
        durable, live = q.subscribe("archive", start="earliest"), q.subscribe(start="earliest")
        q.put_many([b"item"] * 1000)
        assert containers.run(container, LOOK) == "1000 0 0\n"
        assert q.end == 1001
        assert len(durable.get_many(2000)) == len(live.get_many(2000)) == 1001
        q.put(b"y")
        q.unlink()


FILL_AND_DIE = """
import os, queueduct
q = queueduct.EventQueue.create("q", item="u8", sync="never", exist_ok=True)
before = q.end
q.put_many(range(1000))
q.put_once([1, 2, 3], "feed", 1)
q.put_many(range(1000))
print(before, flush=True)
os.kill(os.getpid(), 9)
"""


def test_a_container_that_is_started_anew_finds_all_that_the_kernel_has(containers, container, disk):
    """Nobody has the log open meanwhile, and the containers agree on nothing; no machine went down."""
    for before in (0, 2003):
        died = containers.start(container, FILL_AND_DIE)
        assert died.communicate(timeout=3 * PATIENCE_SECONDS)[0] == f"{before}\n"
    code = "import queueduct; q = queueduct.open('q'); print(q.end, q.put_once([1, 2, 3], 'feed', 1))"
    assert containers.run(container, code) == "4003 0\n"
    with EventQueue.open("q") as q:
        assert (q.end, q.epoch) == (4003, 0)
        q.unlink()


def test_containers_and_the_host_take_turns_and_nothing_is_cut(containers, disk):
    EventQueue.create("q", sync="never").close()
    expected = 0
    for name in CONTAINERS:
        if "-T" in CONTAINERS[name][0] and subprocess.run(["unshare", "-T", "-f", "true"], check=False).returncode:
            continue
        assert containers.run(name, LOOK) == f"{expected} 0 0\n"
        with EventQueue.open("q") as q:
            assert q.end == expected + 1
            q.put(b"y")
        expected += 2
    queueduct.unlink("q")


LEASE_AND_WAIT = """
import sys, queueduct
leases = [queueduct.open(name).lease(3, timeout=5) for name in sys.argv[1:]]
print(*map(len, leases), flush=True)
input()
"""


@pytest.mark.parametrize("container", ["own processes", "no boot id", "own boot id and processes"])
def test_a_member_that_is_killed_in_another_pid_namespace_is_found_dead(containers, container):
    queues = {kind: KINDS[kind].create(kind) for kind in KINDS if KINDS[kind].has_leases}
    for q in queues.values():
        for number in range(3):
            q.put(item(number))
    member = containers.start(container, LEASE_AND_WAIT, *queues)
    assert member.stdout is not None
    assert member.stdout.readline() == "3 3 3 3\n"
    assert [q.try_get() for q in queues.values()] == [None] * 4
    member.kill()
    for kind, q in queues.items():
        got: list[int] = []

        def has_all(q=q, got=got) -> bool:
            with contextlib.suppress(queueduct.Empty):
                got.extend(number_of(each) for each in q.get_many(3, timeout=0.05))
            return len(got) == 3

        until(has_all, f"what the dead one had of {kind}")
        assert sorted(got) == [0, 1, 2]
        q.close()


READ_AND_WAIT = """
import queueduct
q = queueduct.open("q")
live, durable = q.subscribe(start="earliest"), q.subscribe("archive", start="earliest")
print(len(live.get_many(2)), flush=True)
input()
"""


@pytest.mark.parametrize("container", ["own processes", "no boot id", "own boot id and processes"])
def test_readers_that_are_killed_in_another_pid_namespace_hold_nothing(containers, container):
    with EventQueue.create("q") as q:
        q.put_many([b"item"] * 10)
        member = containers.start(container, READ_AND_WAIT)
        assert member.stdout is not None
        assert member.stdout.readline() == "2\n"
        assert [reader.is_attached for reader in q.readers()] == [True, True]
        with pytest.raises(queueduct.ReaderInUse):
            q.subscribe("archive")
        member.kill()
        until(lambda: [reader.is_attached for reader in q.readers()] == [False], "the end of the readers")
        assert len(q.subscribe("archive").get_many(20)) == 10
        q.unlink()


@pytest.mark.parametrize("place", ["memory", "disk"])
@pytest.mark.parametrize("code", ["queueduct.open('q')", "queueduct.EventQueue.create('new')"])
def test_without_proc_the_error_says_what_to_mount(containers, place, code, request):
    if place == "disk":
        request.getfixturevalue("disk")
    with EventQueue.create("q", sync="never") as q:
        q.put_many([b"item"] * 100)
        process = containers.start("no proc", f"import queueduct; {code}")
        _, err = process.communicate(timeout=3 * PATIENCE_SECONDS)
        assert process.returncode == 1
        assert "FileNotFoundError" in err
        assert "mount -t proc proc /proc" in err
        assert (q.end, q.epoch, [queue.name for queue in queueduct.queues()]) == (100, 0, ["q"])
        q.unlink()


@pytest.mark.parametrize("container", ["own boot id", "another's file as boot id", "no boot id"])
def test_an_id_that_a_container_was_given_is_not_the_kernels(containers, container):
    code = "from queueduct.segments.boot import kernel_boot_id; print(kernel_boot_id().hex())"
    assert containers.run(container, code) == f"{bytes(16).hex()}\n"


def test_the_boot_id_is_known_also_where_proc_sys_is_read_only():
    assert kernel_boot_id() != bytes(16)
    path = queueduct.segments.boot.PROC / "sys/kernel/random/boot_id"
    proc = "20 1 0:5 / /proc rw - proc proc rw\n"
    assert is_kernels_own(path, proc)
    assert is_kernels_own(path, proc + "30 20 0:5 /sys /proc/sys ro - proc proc rw\n")
    assert not is_kernels_own(path, proc + "31 20 0:9 / /proc/sys/kernel/random rw - tmpfs tmpfs rw\n")
    assert not is_kernels_own(
        path, proc + "32 20 0:5 /sys/kernel/random/uuid /proc/sys/kernel/random/boot_id rw - proc proc rw\n"
    )
    assert not is_kernels_own(path, "")


def test_a_container_does_not_hide_that_the_machine_was_started_anew(containers, disk):
    """Its boot id is nobody's, but its clocks are the machine's."""
    died = containers.start("own boot id", FILL_AND_DIE)
    assert died.communicate(timeout=3 * PATIENCE_SECONDS) == ("0\n", "")
    with RawEvents("q") as raw:
        assert raw.get_control("boot_id") == 0
        raw.start_anew()
        raw.set_control("boot_id", 0)
    found = containers.run("own boot id", "import queueduct; q = queueduct.open('q'); print(q.end, q.epoch)")
    assert found == "1003 1\n"  # put_once has synced
