"""Workers: a pool of processes on a queue with leases. What each module does is in docs/jobs.md#how-it-works."""

from queueduct.pool.dead_letters import DeadLetter
from queueduct.pool.progress import WorkersProgress
from queueduct.pool.workers import Workers

__all__ = ["DeadLetter", "Workers", "WorkersProgress"]
