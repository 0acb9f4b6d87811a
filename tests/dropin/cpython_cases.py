"""CPython's own tests of its queues, with our classes in their place: python -m tests.dropin.cpython_cases METHOD.

METHOD is `threads`, or a start method. Prints one JSON object: which cases ran, and the errors of those that failed.
Cases are those of the running Python's `test` package.
"""

import json
import multiprocessing
import sys
import unittest

from test import _test_multiprocessing, test_queue

import queueduct.multiprocessing
import queueduct.queue

FEEDER = "tests the feeder thread, which is not there: an object that cannot be pickled raises at put"
PRIVATE = "reads the private pipe ends _reader and _writer, which are not there"
LEFT_OUT = {
    "ProcessesQueue.test_queue_feeder_donot_stop_onexc": FEEDER,
    "ProcessesQueue.test_queue_feeder_on_queue_feeder_error": FEEDER,
    "ProcessesSimpleQueue.test_closed": PRIVATE,
}


class ThreadsQueue(test_queue.CQueueTest):
    queue = queueduct.queue


class ThreadsFailingQueue(test_queue.CFailingQueueTest):
    queue = queueduct.queue


class ThreadsSimpleQueue(test_queue.CSimpleQueueTest):
    queue = queueduct.queue


class ProcessesQueue(_test_multiprocessing._TestQueue, _test_multiprocessing.ProcessesMixin, unittest.TestCase):
    Queue = queueduct.multiprocessing.Queue
    JoinableQueue = queueduct.multiprocessing.JoinableQueue


class ProcessesSimpleQueue(_test_multiprocessing.TestSimpleQueue):
    pass


THREADS = (ThreadsQueue, ThreadsFailingQueue, ThreadsSimpleQueue)
PROCESSES = (ProcessesQueue, ProcessesSimpleQueue)


def put_ours_in_place():
    """Cases that make their queues by multiprocessing's own functions, in this process, get ours."""
    for name in ("Queue", "JoinableQueue", "SimpleQueue"):
        setattr(multiprocessing, name, getattr(queueduct.multiprocessing, name))


class Result(unittest.TestResult):
    """Keeps the names of the cases that passed."""

    def __init__(self):
        super().__init__()
        self.passed = []

    def addSuccess(self, test):  # noqa: N802  # unittest's name
        super().addSuccess(test)
        self.passed.append(name_of(test))


def name_of(case):
    return ".".join(case.id().split(".")[-2:])


def run(method):
    if method != "threads":
        multiprocessing.set_start_method(method, force=True)  # an import has chosen one
        put_ours_in_place()
    loader = unittest.defaultTestLoader
    found = [
        case for each in (THREADS if method == "threads" else PROCESSES) for case in loader.loadTestsFromTestCase(each)
    ]
    result = Result()
    unittest.TestSuite(case for case in found if name_of(case) not in LEFT_OUT).run(result)
    bad = [(name_of(case), text) for case, text in result.errors + result.failures]
    return {
        "found": [name_of(case) for case in found],
        "passed": result.passed,
        "skipped": [(name_of(case), reason) for case, reason in result.skipped],
        "bad": bad,
    }


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1])))
