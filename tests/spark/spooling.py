"""A queue that is drained into a spool, without Spark: as a stream reader has it, and killed at any of its steps."""

import os
import signal

import queueduct
from queueduct.spark.address import Address
from queueduct.spark.options import SourceOptions
from queueduct.spark.read.drainer import Drainer
from queueduct.spark.read.spool import READER, Spool, unpacked
from queueduct.spark.read.spooled_stream import SpooledStreamReader
from tests.spark.rows import TICK

STEPS = ["before claim", "claimed", "appended", "synced", "before release", "released", "settled"]


class Query:
    """What a stream reader has of a queue and its spool."""

    def __init__(self, directory, name="jobs"):
        self.queue = queueduct.open(name)
        self.address = Address(name).exactly(self.queue)
        self.spool = Spool.open(self.address, directory, self.queue.item, None)
        self.spool.note()
        self.reader = self.spool.log.subscribe(READER, start="earliest")
        self.drainer = Drainer(self.queue, self.spool, self.spool.log.subscribe(self.spool.drainer, start="earliest"))

    def positions(self):
        log = self.spool.log
        return unpacked(log.read(log.earliest, log.end))[1]

    def numbers(self):
        log = self.spool.log
        return unpacked(log.read(log.earliest, log.end))[0]["number"]

    def close(self):
        self.spool.close()
        self.queue.close()


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def dying(step, drainer):
    """The drainer's own calls, with a death at one of its steps."""
    take, append, log, reader = drainer.take, drainer.append, drainer.spool.log, drainer.reader

    def at(name, work):
        def call(*arguments):
            if step == f"before {name}":
                die()
            result = work(*arguments)
            if step in PAST[name]:
                die()
            return result

        return call

    def taken(rows):
        lease = at("claim", take)(rows)
        if lease is not None:
            lease.release = at("release", lease.release)
        return lease

    drainer.take = taken
    drainer.append = at("append", append)
    drainer.spool.log = Over(log, sync=at("sync", log.sync))
    drainer.reader = Over(reader, commit=at("settle", reader.commit))


class Over:
    """Something with some of its calls replaced."""

    def __init__(self, inner, **replaced):
        self.inner = inner
        self.__dict__ |= replaced

    def __getattr__(self, name):
        return getattr(self.inner, name)


PAST = {
    "claim": {"claimed"},
    "append": {"appended"},
    "sync": {"synced"},
    "release": {"released"},
    "settle": {"settled"},
}


def killed_at(step, directory, rows):
    """Drain in a process of its own that dies at the step."""
    child = os.fork()
    if child == 0:
        query = Query(directory)
        dying(step, query.drainer)
        query.drainer.drain(rows)
        os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


# Each kind that is drained: how a queue of a thousand jobs is made.
MAKERS = {
    "bounded": lambda: queueduct.BoundedQueue.create("jobs", 1024, item=TICK),
    "growing": lambda: queueduct.GrowingQueue.create("jobs", item=TICK, first_bytes=1024, steps=6),
    "slots": lambda: queueduct.SlotQueue.create("jobs", 1024, item=TICK),
    "overwriting": lambda: queueduct.OverwritingQueue.create("jobs", 1024, item=TICK),
}


def stream_of(jobs, directory, **options):
    """The stream reader, as Spark makes and calls it."""
    given = {"queue": "jobs", "spoolDir": str(directory), **options}
    return SpooledStreamReader(SourceOptions.of(given), Address("jobs").exactly(jobs), None)
