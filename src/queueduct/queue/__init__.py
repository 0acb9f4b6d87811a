"""Queues between threads with the calls of the standard library's: ``import queueduct.queue as queue``.

LifoQueue and PriorityQueue are the standard library's own.
"""

from queue import LifoQueue, PriorityQueue

from queueduct.errors import Empty, Full, ShutDown
from queueduct.queue._threads import Queue, SimpleQueue

__all__ = ["Empty", "Full", "LifoQueue", "PriorityQueue", "Queue", "ShutDown", "SimpleQueue"]
