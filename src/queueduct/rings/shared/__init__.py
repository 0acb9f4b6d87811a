"""Queues of rings in shared memory: convert, wait, raise; the protocol is in native/ring/operations.hpp."""
