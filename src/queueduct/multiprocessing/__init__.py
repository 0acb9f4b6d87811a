"""Queues between processes with multiprocessing's calls: ``from queueduct.multiprocessing import Queue``.

They have no name, and go with their last user. Pass one to a process as an argument, or let it be forked.
"""

from queueduct.errors import Empty, Full
from queueduct.multiprocessing._joinable import JoinableQueue
from queueduct.multiprocessing._queues import Queue, SimpleQueue

__all__ = ["Empty", "Full", "JoinableQueue", "Queue", "SimpleQueue"]
