"""What the fork server imports once, so that no run pays for it. The queues are not among it."""

from benchmarks import crew, items

__all__ = ["crew", "items"]
