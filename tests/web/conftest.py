"""A server of the page, in this process, on the test's own queues."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from queueduct.monitoring import Monitor
from queueduct.web.access import Access
from queueduct.web.server import Server, bound
from queueduct.web.service import Service

Serve = Callable[..., Server]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts a server on a free port."""
    with contextlib.ExitStack() as stack:

        def start(*, interval: float = 0.1, window: float = 1.0, **allowed: Any) -> Server:
            monitor = stack.enter_context(Monitor(interval=interval, window=window))
            access = Access.made("127.0.0.1", **allowed)
            service = Service(monitor)
            server = stack.enter_context(bound("127.0.0.1", 0, service, access))
            stack.enter_context(service)
            thread = threading.Thread(target=server.serve_forever, args=(0.05,))
            thread.start()
            stack.callback(thread.join)
            stack.callback(server.shutdown)
            return server

        yield start
