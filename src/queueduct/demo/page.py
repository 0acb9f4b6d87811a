"""The page of ``queueduct web``, served by the demonstration itself while it runs."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from queueduct.monitoring import Monitor
from queueduct.web.access import Access
from queueduct.web.server import Server, bound
from queueduct.web.service import Service

__all__ = ["PORT", "page"]

HOST = "127.0.0.1"
PORT = 8321  # as of queueduct web
LOOK_SECONDS = 0.5


@contextlib.contextmanager
def page(port: int | None) -> Iterator[str]:
    """Serves the page to this host. Yields its address; without a port it takes the usual one, or any that is free."""
    access = Access.made(HOST, is_remote=False, actions=False, items=False)
    with Monitor(interval=LOOK_SECONDS) as monitor:
        service = Service(monitor)
        with listening(port, service, access) as server, service:
            thread = threading.Thread(target=server.serve_forever, name="queueduct-demo-page", daemon=True)
            thread.start()
            try:
                yield server.url
            finally:
                server.shutdown()
                thread.join()


def listening(port: int | None, service: Service, access: Access) -> Server:
    if port is not None:
        return bound(HOST, port, service, access)
    with contextlib.suppress(OSError):
        return bound(HOST, PORT, service, access)
    return bound(HOST, 0, service, access)
