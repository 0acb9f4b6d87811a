"""Requests as anybody can send them, header by header."""

from __future__ import annotations

import http.client
import json
from typing import Any, NamedTuple

from queueduct.web.server import Server


class Answer(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def told(self) -> Any:
        return json.loads(self.body)


def ask(
    server: Server, path: str, *, method: str = "GET", body: Any = None, raw: bytes | None = None, **headers: str | None
) -> Answer:
    """Sends one request, with the token. ``None`` leaves a header out; names may be written with underscores."""
    given: dict[str, str | None] = {"Host": f"127.0.0.1:{server.server_address[1]}"}
    if server.access.token:
        given["Authorization"] = f"Bearer {server.access.token}"
    data = raw
    if body is not None:
        data = json.dumps(body).encode()
        given["Content-Type"] = "application/json"
    if data is not None:
        given["Content-Length"] = str(len(data))
    given.update({name.replace("_", "-"): value for name, value in headers.items()})
    connection = http.client.HTTPConnection("127.0.0.1", int(server.server_address[1]), timeout=20)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in given.items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders(data)
        answer = connection.getresponse()
        return Answer(answer.status, answer.msg, answer.read())
    finally:
        connection.close()


def post(server: Server, path: str, body: Any, *, token: str | None = None, **headers: str | None) -> Answer:
    authorization = None if token is None else f"Bearer {token}"
    return ask(server, path, method="POST", body=body, **{"Authorization": authorization, **headers})
