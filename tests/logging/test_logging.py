"""Lines of several processes through one queue: none is lost by a kill, and the application never sees an error."""

from __future__ import annotations

import logging
import logging.config
import logging.handlers
import os
import signal
import sys
import threading
import time

import pytest

import queueduct
from queueduct.logging import QueueHandler, QueueListener
from tests.support.deadline import until

LINES = 3000
WORKER = f"""
import logging, logging.config, os, sys
logging.config.dictConfig({{
    "version": 1,
    "handlers": {{"queue": {{"()": "queueduct.logging.QueueHandler", "name": "logs", "timeout": 60}}}},
    "root": {{"level": "INFO", "handlers": ["queue"]}},
}})
worker, path = sys.argv[1:]
returned = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for n in range({LINES}):
    logging.info("%s %d %s", worker, n, "x" * (n % 300))
    os.write(returned, b".")
"""


@pytest.fixture
def logger():
    """A logger of its own, without the handlers of others."""
    logger = logging.getLogger("queueduct.test")
    logger.propagate = False
    logger.setLevel(logging.INFO)
    yield logger
    for handler in list(logger.handlers):
        logger.removeHandler(handler)
        handler.close()


@pytest.fixture
def lines(tmp_path):
    handler = logging.FileHandler(tmp_path / "lines", encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(message)s"))
    yield handler
    handler.close()


def written(lines):
    lines.flush()
    with open(lines.baseFilename, encoding="utf-8") as file:
        return file.read().splitlines()


def test_four_processes_and_a_kill_lose_no_line_that_was_logged(children, lines, tmp_path):
    paths = [tmp_path / f"returned-{worker}" for worker in range(4)]
    with QueueListener("logs", lines):
        workers = [children.start(WORKER, worker, path) for worker, path in enumerate(paths)]
        until(lambda: paths[2].exists() and paths[2].stat().st_size > LINES // 10)
        workers[2].send_signal(signal.SIGKILL)
        for worker in workers:
            _, errors = worker.communicate(timeout=60)
            assert errors == ""
    seen = {worker: [] for worker in range(4)}
    for line in written(lines):
        worker, n, _ = (line + " ").split(" ", 2)
        seen[int(worker)].append(int(n))
    for worker, path in enumerate(paths):
        assert seen[worker] == list(range(len(seen[worker])))
        assert path.stat().st_size <= len(seen[worker]) <= path.stat().st_size + 1
    assert 0 < len(seen[2]) < LINES
    assert all(len(seen[worker]) == LINES for worker in (0, 1, 3))


def test_a_killed_listener_leaves_the_lines_to_the_next_one(children, lines, logger, tmp_path):
    logger.addHandler(QueueHandler("logs"))
    for n in range(1000):
        logger.info("%d", n)
    listener = children.start(
        "import logging, os, signal, sys\n"
        "from queueduct.logging import QueueListener\n"
        "class Killed(logging.FileHandler):\n"
        "    count = 0\n"
        "    def emit(self, record):\n"
        "        super().emit(record)\n"
        "        self.count += 1\n"
        "        if self.count == 300:\n"
        "            os.kill(os.getpid(), signal.SIGKILL)\n"
        "QueueListener('logs', Killed(sys.argv[1])).start()\n"
        "signal.pause()\n",
        tmp_path / "first",
    )
    assert listener.wait(timeout=60) == -signal.SIGKILL
    first = [int(line) for line in (tmp_path / "first").read_text().splitlines()]
    with QueueListener("logs", lines):
        pass
    second = [int(line) for line in written(lines)]
    assert first == list(range(300))
    assert sorted({*first, *second}) == list(range(1000))
    assert len(second) == len(set(second)) == 1000 - 256  # the batch that was written whole does not come again


def test_a_forked_child_logs_through_the_same_handler(children, lines, logger):
    logger.addHandler(QueueHandler("logs"))
    with QueueListener("logs", lines):
        logger.info("parent")
        assert children.wait(children.fork(lambda: logger.info("child"))) == 0
    assert written(lines) == ["parent", "child"]


FORK_BESIDE_A_LISTENER = """
import logging, os, signal, sys, threading, warnings
from queueduct.logging import QueueHandler, QueueListener

warnings.simplefilter("ignore", DeprecationWarning)  # forks beside threads
lines = logging.FileHandler(sys.argv[1])
log = logging.getLogger("busy")
log.setLevel(logging.INFO)
log.addHandler(QueueHandler("logs"))
stop = threading.Event()

def write():
    while not stop.is_set():
        log.info("a line")

with QueueListener("logs", lines):
    writer = threading.Thread(target=write)
    writer.start()
    for number in range(300):
        pid = os.fork()
        if pid == 0:
            signal.alarm(20)
            lines.flush()  # as dictConfig() does with the handlers that are there
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if code:
            print("child", number, "ended with", code)
            break
    stop.set()
    writer.join()
print("done")
"""


def test_a_child_that_is_forked_while_a_listener_writes_has_free_streams(children, lines, tmp_path):
    assert children.run(FORK_BESIDE_A_LISTENER, tmp_path / "lines.log") == "done\n"


def test_exceptions_and_arguments_arrive_as_text(lines, logger):
    logger.addHandler(QueueHandler("logs"))
    with QueueListener("logs", lines):
        try:
            raise LookupError("gone")
        except LookupError:
            logger.exception("a %s of %r", "failure", object)
    assert written(lines)[0] == "a failure of <class 'object'>"
    assert "LookupError: gone" in "\n".join(written(lines))


def test_a_full_queue_costs_the_timeout_once_and_never_an_exception(logger, capsys):
    handler = QueueHandler("logs", timeout=0.2, capacity=4)
    logger.addHandler(handler)
    started = time.monotonic()
    for n in range(50):
        logger.info("%d %s", n, "x" * 200)
    assert 0.2 <= time.monotonic() - started < 5
    assert "Full" in capsys.readouterr().err
    assert handler.is_stuck
    assert queueduct.open("logs").get_nowait().getMessage().startswith("0 ")
    logger.info("short")
    assert not handler.is_stuck


def test_a_queue_that_is_shut_down_is_reported_and_ends_the_listener(lines, logger, capsys):
    logger.addHandler(QueueHandler("logs"))
    logger.info("before")
    with QueueListener("logs", lines) as listener:
        queueduct.open("logs").shutdown()
        until(lambda: written(lines) == ["before"])
        logger.info("after")
        assert "ShutDown" in capsys.readouterr().err
        listener.stop()
        listener.stop()
    assert written(lines) == ["before"]


def test_a_listener_starts_once_and_again_after_a_stop(lines, logger):
    logger.addHandler(QueueHandler("logs"))
    listener = QueueListener("logs", lines)
    for n in range(3):
        listener.start()
        with pytest.raises(RuntimeError, match="started already"):
            listener.start()
        logger.info("%d", n)
        listener.stop()
    assert written(lines) == ["0", "1", "2"]


def test_a_stop_with_a_full_queue_writes_everything(lines, logger):
    logger.addHandler(QueueHandler("logs", capacity=64, timeout=0))
    listener = QueueListener("logs", lines)
    for n in range(40):
        logger.info("%d", n)
    queue = queueduct.open("logs")
    while queue.try_put(None):
        pass
    listener.start()
    listener.stop()
    assert [int(line) for line in written(lines)] == list(range(len(written(lines))))
    assert len(written(lines)) > 10


class OnlyThere:
    def __reduce__(self):
        return (int, ("no number",))


def test_a_record_that_cannot_be_unpickled_is_reported_and_the_others_are_written(lines, logger):
    logger.addHandler(QueueHandler("logs"))
    logger.info("one")
    logger.info("two", extra={"thing": OnlyThere()})
    logger.info("three")
    with QueueListener("logs", lines):
        pass
    shown = written(lines)
    assert [shown[0], shown[2]] == ["one", "three"]
    assert "a record is lost" in shown[1]


def test_another_queue_of_that_name_is_refused(logger, capsys):
    queueduct.EventQueue.create("log").close()
    with pytest.raises(TypeError, match="'log' is of kind events"):
        QueueListener("log")
    with pytest.raises(TypeError, match="name of a queue is needed"):
        QueueHandler(queueduct.BoundedQueue(4))
    with pytest.raises(ValueError, match="timeout must be"):
        QueueHandler("logs", timeout=-1)
    logger.addHandler(QueueHandler("log"))
    logger.info("refused")
    assert "is of kind events" in capsys.readouterr().err


def test_it_needs_no_queue_until_the_first_line(logger):
    logger.addHandler(QueueHandler("logs"))
    assert queueduct.queues() == []
    logger.info("%s", os.getpid())
    assert [info[:2] for info in queueduct.queues()] == [("logs", "bounded")]


@pytest.mark.parametrize("make", [queueduct.BoundedQueue.create, queueduct.GrowingQueue.create])
@pytest.mark.parametrize("name", ["plain", None])
def test_the_standard_librarys_listener_writes_every_line_of_a_queue(make, name, lines, logger, monkeypatch):
    """It calls task_done() after each, and an error of its thread would be printed only."""
    failed: list[object] = []
    monkeypatch.setattr(threading, "excepthook", failed.append)
    with make(name, item=object) as queue:
        listener = logging.handlers.QueueListener(queue, lines)
        listener.start()
        logger.addHandler(logging.handlers.QueueHandler(queue))
        for n in range(5):
            logger.info("line %d", n)
        until(lambda: queue.empty() or failed)
        listener.stop()
    assert (written(lines), failed) == ([f"line {n}" for n in range(5)], [])


@pytest.mark.skipif(sys.version_info < (3, 12), reason="dictConfig makes listeners from Python 3.12")
def test_dict_config_takes_a_queue_of_ours(capsys):
    made = {"()": "queueduct.BoundedQueue.create", "name": "configured", "item": object}
    queue = {"class": "logging.handlers.QueueHandler", "queue": made, "handlers": ["lines"]}
    sink = {"class": "logging.StreamHandler", "stream": "ext://sys.stdout"}
    loggers = {"queueduct.configured": {"level": "INFO", "handlers": ["queue"], "propagate": False}}
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "handlers": {"lines": sink, "queue": queue},
            "loggers": loggers,
        }
    )
    listener = logging.getHandlerByName("queue").listener
    listener.start()
    for n in range(3):
        logging.getLogger("queueduct.configured").info("line %d", n)
    listener.stop()
    assert capsys.readouterr().out == "line 0\nline 1\nline 2\n"
