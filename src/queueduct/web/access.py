"""Who may ask for what. A browser shows any page of any site, which may send requests to this server."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from http import HTTPStatus
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
    """Needed for actions and items."""

    @classmethod
    def made(cls, host: str, *, is_remote: bool, actions: bool, items: bool) -> Access:
        return cls(host, is_remote, actions, items, secrets.token_urlsafe(32) if actions or items else "")

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

    def check_token(self, authorization: str | None) -> None:
        scheme, _, given = (authorization or "").partition(" ")
        expected = self.token.encode()
        is_right = hmac.compare_digest(given.strip().encode(errors="replace"), expected)
        if not (self.token and scheme.lower() == "bearer" and is_right):
            raise Refusal(
                HTTPStatus.UNAUTHORIZED,
                "the token is missing or wrong: open the address that queueduct web has printed",
            )


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
