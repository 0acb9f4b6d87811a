"""The server: the page, its data and events, metrics, and actions if they are allowed."""

from __future__ import annotations

import contextlib
import errno
import json
import socket
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from queueduct._version import __version__
from queueduct.errors import QueueductError, QueueNotFound
from queueduct.monitoring import as_json
from queueduct.web.access import SECURITY_HEADERS, Access, Refusal, is_loopback
from queueduct.web.actions import ACTIONS, act
from queueduct.web.items import last_items
from queueduct.web.metrics import metrics_page
from queueduct.web.service import Service

__all__ = ["Server", "bound"]

PAGE = Path(__file__).parent / "page"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
    ".svg": "image/svg+xml",
}
FILES = {f"/{path.name}": path for path in PAGE.iterdir() if path.suffix in TYPES}
BODY_LIMIT = 4096
VIEWERS_LIMIT = 64
IDLE_SECONDS = 30.0
JSON = "application/json"


class Server(ThreadingHTTPServer):
    """Serves what a service has seen. Each request has a thread, and each viewer keeps one."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, host: str, port: int, service: Service, access: Access) -> None:
        self.service = service
        self.access = access
        self.viewers = threading.BoundedSemaphore(VIEWERS_LIMIT)
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        self.address_family = family
        super().__init__((str(address[0]), port), Handler)

    @property
    def url(self) -> str:
        host, port = self.server_address[:2]
        name = f"[{host!s}]" if self.address_family is socket.AF_INET6 else host
        token = f"#token={self.access.token}" if self.access.token else ""
        return f"http://{name!s}:{port}/{token}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A viewer who goes away in the middle is no error to print."""


def bound(host: str, port: int, service: Service, access: Access) -> Server:
    """Returns a server that listens. Raises an error with its remedy."""
    if not (is_loopback(host) or access.is_remote):
        raise ValueError(
            f"the address must be one that only this host reaches: --host {host}; to be seen by everybody who reaches "
            "it, without encryption, add --allow-remote, or keep 127.0.0.1 and come through ssh -L"
        )
    try:
        return Server(host, port, service, access)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise OSError(
                error.errno,
                f"port {port} of {host} is in use, perhaps by another queueduct web; try --port {port + 1}, or "
                "--port 0 for any that is free",
            ) from None
        if error.errno == errno.EACCES:
            raise OSError(error.errno, f"port {port} needs root; try --port 8321") from None
        raise


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version = f"queueduct/{__version__}"
    sys_version = ""
    timeout = IDLE_SECONDS

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing: a viewer asks twice a second."""

    def _answer(self, work: Any) -> None:
        try:
            self.server.access.check_host(self.headers.get("Host"))
            self.server.access.check_site(self._site())
            work(urlsplit(self.path))
        except Refusal as refusal:
            self._send_error(refusal.status, refusal)
        except (QueueNotFound, FileNotFoundError) as error:
            self._send_error(HTTPStatus.NOT_FOUND, error)
        except (ConnectionError, TimeoutError):
            self.close_connection = True
        except (QueueductError, OSError, ValueError, TypeError, RuntimeError, MemoryError) as error:
            self._send_error(HTTPStatus.CONFLICT, error)

    def _site(self) -> str | None:
        """Where the request comes from. To follow a link to the page from elsewhere is nobody's harm."""
        is_page = self.headers.get("Sec-Fetch-Mode") == "navigate" and not self.path.startswith("/api")
        return None if is_page else self.headers.get("Sec-Fetch-Site")

    def _get(self, url: Any) -> None:
        path = url.path
        if path == "/" or path.startswith("/queue/"):
            self._send(HTTPStatus.OK, TYPES[".html"], (PAGE / "index.html").read_bytes())
        elif path in FILES:
            self._send(HTTPStatus.OK, TYPES[FILES[path].suffix], FILES[path].read_bytes())
        else:
            self.server.access.check_reader(self.headers.get("Authorization"))
            self._get_data(path, url)

    def _get_data(self, path: str, url: Any) -> None:
        """What tells of the queues, and of the server's own state."""
        service = self.server.service
        if path == "/metrics":
            self._send(*metrics_page(service.snapshot, self.headers.get("Accept") or ""))
        elif path == "/api/queues":
            self._send(HTTPStatus.OK, JSON, service.queues_json().encode())
        elif path == "/api/lately":
            self._send(HTTPStatus.OK, JSON, service.lately_json().encode())
        elif path == "/api/server":
            access = self.server.access
            told = {
                "version": __version__,
                "directory": str(service.monitor.directory),
                "interval": service.interval,
                "window": service.monitor.span.window,
                "actions": access.actions,
                "items": access.items,
            }
            self._send(HTTPStatus.OK, JSON, json.dumps(told).encode())
        elif path == "/api/events":
            names = parse_qs(url.query).get("queue")
            self._send_events(names[0] if names else None)
        elif path.startswith("/api/queue/"):
            self._get_queue(*self._queue_path(path))
        else:
            raise Refusal(HTTPStatus.NOT_FOUND, f"there is nothing at {path}")

    def _get_queue(self, name: str, rest: str) -> None:
        access = self.server.access
        if rest == "items":
            if not access.items:
                raise Refusal(HTTPStatus.FORBIDDEN, "items are shown only if the server was started with --show-items")
            access.check_token(self.headers.get("Authorization"))
            told = last_items(name, directory=self.server.service.monitor.directory)
        elif rest:
            raise Refusal(HTTPStatus.NOT_FOUND, f"a queue has no {rest!r} here")
        else:
            detail = self.server.service.detail(name)
            if detail is None:
                raise QueueNotFound(f"there is no queue named {name!r} in {self.server.service.monitor.directory}")
            told = as_json(detail if hasattr(detail, "history") else {"queue": detail})
        self._send(HTTPStatus.OK, JSON, json.dumps(told).encode())

    def _post(self, url: Any) -> None:
        access = self.server.access
        access.check_origin(self.headers.get("Origin"), self.headers.get("Host"))
        if not url.path.startswith("/api/queue/"):
            raise Refusal(HTTPStatus.NOT_FOUND, f"there is nothing to do at {url.path}")
        name, action = self._queue_path(url.path)
        if not access.actions:
            raise Refusal(HTTPStatus.FORBIDDEN, "nothing is changed: the server was started without --allow-actions")
        access.check_token(self.headers.get("Authorization"))
        if action not in ACTIONS:
            raise Refusal(HTTPStatus.NOT_FOUND, f"there is no action {action!r}; there are {', '.join(ACTIONS)}")
        told = act(action, name, self._body(), directory=self.server.service.monitor.directory)
        self._send(HTTPStatus.OK, JSON, json.dumps({"done": told}).encode())

    def _body(self) -> dict[str, Any]:
        if self.headers.get_content_type() != JSON:
            raise Refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"the body must be {JSON}")
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > BODY_LIMIT:
            raise Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body must have at most {BODY_LIMIT} bytes")
        try:
            given = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, dict):
            raise Refusal(HTTPStatus.BAD_REQUEST, "the body must be a JSON object")
        return given

    @staticmethod
    def _queue_path(path: str) -> tuple[str, str]:
        """``/api/queue/NAME`` or ``/api/queue/NAME/WHAT``; a slash within a name would be written %2F."""
        name, _, rest = path.removeprefix("/api/queue/").partition("/")
        return unquote(name, errors="surrogateescape"), rest

    def _send_events(self, name: str | None) -> None:
        """Server-sent events: one for each look, until the viewer goes."""
        service = self.server.service
        if not self.server.viewers.acquire(blocking=False):
            raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, f"at most {VIEWERS_LIMIT} pages at a time; close another one")
        try:
            self._send_head(HTTPStatus.OK, "text/event-stream", None)
            self.wfile.write(b"retry: 1000\n\n")
            shown = -1
            while (number := service.next(shown, IDLE_SECONDS)) is not None:
                shown = number
                data = service.queues_json() if name is None else service.queue_json(name)
                self.wfile.write(f"id: {number}\ndata: {data}\n\n".encode())
        finally:
            self.close_connection = True
            self.server.viewers.release()

    def _send_head(self, status: HTTPStatus, kind: str, length: int | None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Cache-Control", "no-store")
        for name, value in SECURITY_HEADERS.items():
            self.send_header(name, value)
        if status is HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", "Bearer")
        if length is None:
            self.send_header("Connection", "close")
        else:
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self._send_head(status, kind, len(body))
        self.wfile.write(body)

    def _send_error(self, status: HTTPStatus, error: Exception) -> None:
        """Says why. The connection ends: a body that was not read would be taken for the next request."""
        self.close_connection = True
        body = json.dumps({"error": str(error)}).encode()
        with contextlib.suppress(OSError):
            self._send(status, JSON, body)
