"""Who may ask for what. A browser shows any page of any site, which may send requests to this server."""

from __future__ import annotations

import hmac
import ipaddress
import os
import re
import secrets
import stat
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

__all__ = ["SECURITY_HEADERS", "Access", "Refusal", "is_loopback"]

SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
TOKEN_BYTES = 32
TOKEN = re.compile(r"[A-Za-z0-9_-]{16,512}")
LOOPBACK_NAMES = {"localhost", "127.0.0.1", "::1"}


class Refusal(Exception):
    """A request that is refused: the status, and why."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Access(NamedTuple):
    """What this server allows."""

    host: str
    """The address that it listens on."""
    is_remote: bool = False
    """True if it was told to listen on an address that others reach."""
    actions: bool = False
    items: bool = False
    token: str = ""
    """Needed for everything but the page's own files, which tell nothing of the queues."""
    is_open: bool = False
    """True if the counters need no token; actions and items need it still."""

    @classmethod
    def made(
        cls,
        host: str,
        *,
        is_remote: bool = False,
        actions: bool = False,
        items: bool = False,
        is_open: bool = False,
        token_file: Path | None = None,
    ) -> Access:
        """Returns what a server allows, with a new token, or the one of a file."""
        if is_open and token_file is None and not (actions or items):
            token = ""
        else:
            token = secrets.token_urlsafe(TOKEN_BYTES) if token_file is None else token_of(token_file)
        return cls(host, is_remote, actions, items, token, is_open)

    def check_host(self, given: str | None) -> None:
        """A site whose name leads to this address (DNS rebinding) sends its own name here."""
        if given is None:
            raise Refusal(HTTPStatus.BAD_REQUEST, "the request must have a Host header")
        name = name_of(given)
        if name in LOOPBACK_NAMES or name == self.host.lower() or (self.is_remote and is_address(name)):
            return
        raise Refusal(
            HTTPStatus.MISDIRECTED_REQUEST,
            f"this server is not {name!r}: ask for it as localhost, 127.0.0.1 or the address that it was started with",
        )

    def check_site(self, fetch_site: str | None) -> None:
        """Browsers say where a request comes from: another site has nothing to ask here."""
        if fetch_site in ("cross-site", "same-site"):
            raise Refusal(HTTPStatus.FORBIDDEN, "the request must come from this server's own page")

    def check_origin(self, origin: str | None, host: str | None) -> None:
        if origin is not None and origin != f"http://{host}":
            raise Refusal(HTTPStatus.FORBIDDEN, f"the request must come from this server's own page: Origin={origin!r}")

    def check_reader(self, authorization: str | None) -> None:
        """For counters. Other users of this host reach it too, and the queues are not theirs."""
        if not self.is_open:
            self.check_token(authorization)

    def check_token(self, authorization: str | None) -> None:
        scheme, _, given = (authorization or "").partition(" ")
        expected = self.token.encode()
        is_right = hmac.compare_digest(given.strip().encode(errors="replace"), expected)
        if not (self.token and scheme.lower() == "bearer" and is_right):
            raise Refusal(
                HTTPStatus.UNAUTHORIZED,
                "the token is missing or wrong: open the address that queueduct web has printed, or send the header "
                "'Authorization: Bearer TOKEN'",
            )


def token_of(path: Path) -> str:
    """Returns the token in a file that only its owner can read; a file that is not there is made, with a new one."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        pass
    else:
        with os.fdopen(descriptor, "w") as file:
            file.write(token + "\n")
        return token
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        raise ValueError(
            f"the token's file must be its owner's alone: {path} has mode {mode:o}; run chmod 600 {path}, or name a "
            "file that is not there"
        )
    token = path.read_text(errors="replace").strip()
    if TOKEN.fullmatch(token) is None:
        raise ValueError(
            f"the token must be one line of at least 16 letters, digits, - and _: {path} has {len(token)} characters; "
            "remove the file, and it is made anew"
        )
    return token


def name_of(host: str) -> str:
    """The name in a Host header, without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.rpartition(":")[0].lower() if host.count(":") == 1 else host.lower()


def is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Returns true if only processes of this host reach the address."""
    return host.lower() == "localhost" or (is_address(host) and ipaddress.ip_address(host).is_loopback)
