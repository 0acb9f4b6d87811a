"""The server: what it tells, whom it refuses, and what it changes only when it was told to."""

from __future__ import annotations

import http.client
import json
import os
import socket

import pytest

import queueduct
from queueduct.monitoring import Monitor
from queueduct.web.access import Access, Refusal, is_loopback
from queueduct.web.server import FILES, PAGE, bound
from queueduct.web.service import Service
from tests.support.deadline import until
from tests.web.asking import ask, post


def test_the_page_and_all_its_files_are_served_with_a_strict_policy(serve):
    server = serve()
    assert {path.name for path in PAGE.iterdir()} == {path.removeprefix("/") for path in FILES}
    for path in ("/", "/queue/ticks", *FILES):
        answer = ask(server, path)
        assert answer.status == 200, path
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "unsafe" not in policy
        assert "http" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
    for path in ("/nothing", "/../server.py", "/page/app.js", "/api/nothing", "/%2e%2e/server.py", "//etc/passwd"):
        assert ask(server, path).status == 404, path


def test_the_page_names_no_other_host():
    for path in FILES.values():
        if not path.name.startswith("uPlot") and path.suffix != ".svg":
            text = path.read_text().replace("http://www.w3.org/2000/svg", "")
            assert "://" not in text, path
            assert "innerHTML" not in text, "what a queue is called must never become markup"


def test_the_api_tells_what_the_queues_say(serve):
    with queueduct.EventQueue.create("ticks", item="f8") as q, q.subscribe("archive"):
        q.put_many([1.0, 2.0, 3.0])
        server = serve()
        (queue,) = ask(server, "/api/queues").told["queues"]
        assert (queue["name"], queue["kind"], queue["depth"], queue["totals"]["items_put"]) == ("ticks", "events", 3, 3)
        detail = ask(server, "/api/queue/ticks").told
        assert detail["queue"]["readers"][0]["label"] == "archive"
        assert detail["queue"]["participants"][0]["pid"] == os.getpid()
        assert detail["stats"]["end"] == 3
        assert set(detail["history"]) >= {"at", "items_in", "depth", "lag"}
        answer = ask(server, "/api/queue/none")
        assert answer.status == 404
        assert "no queue named 'none'" in answer.told["error"]


def test_a_page_that_has_just_come_gets_the_course_of_all_queues(serve):
    with queueduct.BoundedQueue.create("jobs", 64) as q:
        server = serve(interval=0.02)
        q.put_many([b"a"] * 10)
        until(lambda: max(ask(server, "/api/lately").told["jobs"][0], default=0) > 0)
        ins, outs = ask(server, "/api/lately").told["jobs"]
        assert len(ins) == len(outs) <= 120
        assert set(outs) == {0}


def test_a_name_that_is_hard_to_write_is_served(serve):
    for name in ("a b", "50% <b>&'\"", "räder", "x?y=1#z"):
        with queueduct.BoundedQueue.create(name, 4) as q:
            server = serve()
            from urllib.parse import quote

            assert ask(server, f"/api/queue/{quote(name, safe='')}").told["queue"]["name"] == name
            q.unlink()


def events(server, path="/api/events"):
    """Yields events as they come."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=20)
    connection.request("GET", path, headers={"Authorization": f"Bearer {server.access.token}"})
    answer = connection.getresponse()
    assert answer.headers["Content-Type"] == "text/event-stream"
    try:
        while line := answer.readline():
            if line.startswith(b"data: "):
                yield json.loads(line.removeprefix(b"data: "))
    finally:
        connection.close()


def test_events_bring_each_look_and_what_has_changed(serve):
    with queueduct.BoundedQueue.create("jobs", 64) as q:
        stream = events(serve())
        assert next(stream)["queues"][0]["depth"] == 0
        q.put(b"a")
        until(lambda: next(stream)["queues"][0]["depth"] == 1)
        q.unlink()
        until(lambda: next(stream)["queues"] == [])
        stream.close()


def test_events_of_one_queue_have_its_participants_and_tell_when_it_is_gone(serve):
    with queueduct.BoundedQueue.create("jobs", 64) as q:
        q.put(b"a")
        stream = events(serve(), "/api/events?queue=jobs")
        seen = next(stream)
        assert seen["queue"]["participants"][0]["pid"] == os.getpid()
        assert seen["stats"]["push_position"] == 1
        assert seen["history"] is None
        q.unlink()
        until(lambda: next(stream)["queue"] is None)
        stream.close()


def test_viewers_who_go_away_leave_no_thread_and_no_place_taken(serve):
    server = serve()
    places = server.viewers._value
    streams = [events(server) for _ in range(10)]
    for stream in streams:
        next(stream)
    assert server.viewers._value == places - 10
    for stream in streams:
        stream.close()
    until(lambda: server.viewers._value == places, "the places of those who went away")


def test_more_viewers_than_places_are_told_so(serve):
    server = serve()
    while server.viewers.acquire(blocking=False):
        pass
    answer = ask(server, "/api/events")
    assert answer.status == 503
    assert "close another one" in answer.told["error"]


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8321", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1", "[::2]:1"],
)
@pytest.mark.parametrize("path", ["/", "/api/queues", "/metrics", "/app.js"])
def test_a_foreign_host_is_refused(serve, host, path):
    """A site of that name could lead to this address, and read the answers."""
    answer = ask(serve(), path, Host=host)
    assert answer.status == 421
    assert "error" in answer.told


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9", "127.0.0.1", "127.0.0.1:80", "[::1]:8321"])
def test_our_own_names_are_served_at_any_port_since_a_tunnel_may_have_another(serve, host):
    assert ask(serve(), "/api/queues", Host=host).status == 200


def test_a_request_without_a_host_is_refused(serve):
    assert ask(serve(), "/api/queues", Host=None).status == 400


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_sites_page_gets_nothing_but_may_link_to_the_page(serve, site):
    server = serve()
    assert ask(server, "/api/queues", Sec_Fetch_Site=site).status == 403
    assert ask(server, "/api/queues", Sec_Fetch_Site=site, Sec_Fetch_Mode="navigate").status == 403
    assert ask(server, "/", Sec_Fetch_Site=site, Sec_Fetch_Mode="navigate").status == 200
    assert ask(server, "/api/queues", Sec_Fetch_Site="same-origin").status == 200


def test_nothing_is_changed_unless_it_was_allowed(serve):
    with queueduct.EventQueue.create("ticks", item="f8") as q:
        server = serve(is_open=True)
        assert server.access.token == ""
        assert "token" not in server.url
        for token in (None, "", "x"):
            answer = post(server, "/api/queue/ticks/rm", {"segment": q.segment_id.hex()}, token=token)
            assert answer.status == 403
            assert "--allow-actions" in answer.told["error"]
        assert [each.name for each in queueduct.queues()] == ["ticks"]


DATA = ("/api/queues", "/api/lately", "/api/server", "/api/queue/ticks", "/api/queue/ticks/items", "/metrics")


@pytest.mark.parametrize("path", [*DATA, "/api/events", "/api/events?queue=ticks", "/api/nothing"])
def test_a_missing_or_wrong_token_reads_nothing(serve, path):
    """Other users of this host reach the port, too."""
    with queueduct.EventQueue.create("ticks", item="f8"):
        server = serve(items=True)
        right = server.access.token
        for given in (None, "", "Bearer", "Bearer ", "Bearer x", f"Basic {right}", f"Bearer {right}x", right):
            answer = ask(server, path, Authorization=given)
            assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, "Bearer"), given
            assert (
                "the token is missing or wrong: open the address that queueduct web has printed" in answer.told["error"]
            )
            assert b"ticks" not in answer.body
        assert ask(server, f"{path}{'&' if '?' in path else '?'}token={right}", Authorization=None).status == 401
        if path in DATA:
            assert ask(server, path).status == 200


def test_the_pages_own_files_need_no_token_and_tell_nothing(serve):
    with queueduct.EventQueue.create("a-secret-name", item="f8"):
        server = serve()
        for path in ("/", "/queue/a-secret-name", *FILES):
            answer = ask(server, path, Authorization=None)
            assert answer.status == 200
            assert b"a-secret-name" not in answer.body


def test_without_tokens_the_counters_are_open_and_actions_and_items_are_not(serve):
    with queueduct.EventQueue.create("ticks", item="f8") as q:
        server = serve(is_open=True, actions=True, items=True)
        for path in DATA:
            assert ask(server, path, Authorization=None).status == (401 if path.endswith("/items") else 200), path
        body = {"segment": q.segment_id.hex()}
        assert post(server, "/api/queue/ticks/rm", body).status == 401
        assert post(server, "/api/queue/ticks/rm", body, token=server.access.token).status == 200


def test_a_tokens_file_is_made_for_its_owner_alone_and_read_again(tmp_path):
    path = tmp_path / "token"
    first = Access.made("127.0.0.1", token_file=path)
    assert len(first.token) == 43
    assert path.stat().st_mode & 0o777 == 0o600
    assert Access.made("127.0.0.1", token_file=path, is_open=True).token == first.token
    path.chmod(0o640)
    with pytest.raises(ValueError, match=f"has mode 640; run chmod 600 {path}"):
        Access.made("127.0.0.1", token_file=path)
    path.chmod(0o600)
    for text in ("", "short", "two lines of it\nand another one", "ü" * 20):
        path.write_text(text)
        with pytest.raises(ValueError, match="the token must be one line of at least 16 letters"):
            Access.made("127.0.0.1", token_file=path)
    with pytest.raises(FileNotFoundError):
        Access.made("127.0.0.1", token_file=tmp_path / "nowhere" / "token")


def test_a_missing_or_wrong_token_changes_nothing(serve):
    with queueduct.EventQueue.create("ticks", item="f8") as q:
        server = serve(actions=True)
        body = {"segment": q.segment_id.hex()}
        right = server.access.token
        assert server.url.endswith(f"/#token={right}"), "behind the #, a browser sends it to nobody by itself"
        for token in (None, "", "x", right[:-1], right + "x", right.swapcase(), "ü"):
            answer = post(
                server, "/api/queue/ticks/rm", body, token=None if token is None else token.encode().decode("latin-1")
            )
            assert answer.status == 401, token
        assert post(server, "/api/queue/ticks/rm", body, Authorization=f"Basic {right}").status == 401
        assert post(server, f"/api/queue/ticks/rm?token={right}", body).status == 401
        assert len(queueduct.queues()) == 1


def test_another_origin_changes_nothing_even_with_the_token(serve):
    with queueduct.EventQueue.create("ticks", item="f8") as q:
        server = serve(actions=True)
        body = {"segment": q.segment_id.hex()}
        token = server.access.token
        for origin in ("http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:1"):
            assert post(server, "/api/queue/ticks/rm", body, token=token, Origin=origin).status == 403
        answer = ask(
            server,
            "/api/queue/ticks/rm",
            method="POST",
            raw=json.dumps(body).encode(),
            Authorization=f"Bearer {token}",
            Content_Type="text/plain",
        )
        assert answer.status == 415, "a form of another site can send text, but not JSON"
        for method in ("GET", "PUT", "DELETE", "OPTIONS"):
            assert ask(server, "/api/queue/ticks/rm", method=method, Authorization=f"Bearer {token}").status in (
                404,
                501,
            )
        assert len(queueduct.queues()) == 1
        origin = f"http://127.0.0.1:{server.server_address[1]}"
        assert post(server, "/api/queue/ticks/rm", body, token=token, Origin=origin).status == 200
        assert queueduct.queues() == []


def test_each_action_does_what_it_says(serve):
    server = serve(actions=True)
    token = server.access.token
    with queueduct.EventQueue.create("ticks", item="f8") as q:
        q.put_many([float(number) for number in range(100)])
        q.subscribe("archive").close()
        segment = {"segment": q.segment_id.hex()}

        def act(action, **more):
            return post(server, f"/api/queue/ticks/{action}", {**segment, **more}, token=token)

        assert act("keep-last", n=10).status == 200
        assert q.earliest == 90
        assert act("drop-reader", reader="archive").status == 200
        assert q.readers() == []
        assert act("clear").status == 200
        assert q.stats().size == 0
        assert act("shutdown").status == 200
        assert q.stats().is_shut_down
        assert act("rm").status == 200
        assert queueduct.queues() == []
        assert act("rm").status == 404


@pytest.mark.parametrize(
    ("action", "more", "status", "says"),
    [
        ("keep-last", {"n": -1}, 409, "from 0 on"),
        ("keep-last", {"n": True}, 409, "from 0 on"),
        ("keep-last", {}, 409, "from 0 on"),
        ("drop-reader", {"reader": 3}, 409, "the name of a durable reader"),
        ("drop-reader", {"reader": "nobody"}, 409, "no durable reader 'nobody'"),
        ("explode", {}, 404, "there are shutdown, clear"),
        ("shutdown", {"segment": "00"}, 409, "another one than the page has shown"),
        ("shutdown", {"segment": None}, 409, "another one than the page has shown"),
    ],
)
def test_an_action_that_cannot_be_done_says_why_and_does_nothing(serve, action, more, status, says):
    server = serve(actions=True)
    with queueduct.EventQueue.create("ticks", item="f8") as q:
        q.put(1.0)
        body = {"segment": q.segment_id.hex(), **more}
        answer = post(server, f"/api/queue/ticks/{action}", body, token=server.access.token)
        assert (answer.status, says in answer.told["error"]) == (status, True), answer.body
        assert (q.stats().size, q.stats().is_shut_down) == (1, False)


def test_a_queue_that_is_no_log_says_what_it_cannot_do(serve):
    server = serve(actions=True)
    with queueduct.BoundedQueue.create("jobs", 4) as q:
        answer = post(server, "/api/queue/jobs/clear", {"segment": q.segment_id.hex()}, token=server.access.token)
        assert "only an event queue can do that" in answer.told["error"]


@pytest.mark.parametrize(
    ("raw", "status"), [(b"", 400), (b"[]", 400), (b"nonsense", 400), (b"[" * 4000, 400), (b"x" * 5000, 413)]
)
def test_a_body_of_something_else_is_refused(serve, raw, status):
    server = serve(actions=True)
    with queueduct.BoundedQueue.create("jobs", 4):
        headers = {"Authorization": f"Bearer {server.access.token}", "Content_Type": "application/json"}
        assert ask(server, "/api/queue/jobs/rm", method="POST", raw=raw, **headers).status == status
        for length in ("-1", "x", None):
            answer = ask(server, "/api/queue/jobs/rm", method="POST", raw=b"{}", **headers, Content_Length=length)
            assert answer.status == 413
        assert len(queueduct.queues()) == 1


def test_items_are_shown_only_if_it_was_asked_for_and_to_those_with_the_token(serve):
    with queueduct.EventQueue.create("ticks", item="f8") as q:
        q.put_many([1.5, 2.5])
        assert ask(serve(), "/api/queue/ticks/items").status == 403
        server = serve(items=True)
        assert ask(server, "/api/queue/ticks/items", Authorization=None).status == 401
        key = {"Authorization": f"Bearer {server.access.token}"}
        assert ask(server, "/api/queue/ticks/items", **key).told == {"start": 0, "items": ["1.5", "2.5"]}
        assert q.readers() == []
        assert (
            post(server, "/api/queue/ticks/rm", {"segment": q.segment_id.hex()}, token=server.access.token).status
            == 403
        )


def test_items_of_other_kinds_are_peeked_at_or_left_where_they_are(serve):
    server = serve(items=True)
    key = {"Authorization": f"Bearer {server.access.token}"}
    with (
        queueduct.OverwritingQueue.create("feed", item=[("px", "f8"), ("sym", "S4")]) as feed,
        queueduct.BoundedQueue.create("jobs", 4) as jobs,
        queueduct.EventQueue.create("objects", item=object) as objects,
        queueduct.EventQueue.create("long", max_bytes=1 << 20) as long,
    ):
        feed.put((1.5, b"ACME"))
        jobs.put(b"a")
        objects.put([1])
        long.put(b"x" * 5000)
        long.put(b"\xff<script>")
        assert ask(server, "/api/queue/feed/items", **key).told["items"] == ["px=1.5, sym=b'ACME'"]
        assert feed.stats().size == 1
        assert "seen only by those who get them" in ask(server, "/api/queue/jobs/items", **key).told["error"]
        assert "are not shown" in ask(server, "/api/queue/objects/items", **key).told["error"]
        first, second = ask(server, "/api/queue/long/items", **key).told["items"]
        assert len(first) <= 401
        assert second == "\\xff<script>"


def test_a_port_in_use_says_what_to_do():
    with socket.create_server(("127.0.0.1", 0)) as taken, Monitor() as monitor:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"port {port} of 127.0.0.1 is in use.*try --port {port + 1}, or --port 0"):
            bound("127.0.0.1", port, Service(monitor), Access("127.0.0.1"))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org"])
def test_an_address_that_others_reach_is_refused_unless_it_was_allowed(host):
    assert not is_loopback(host)
    with Monitor() as monitor, pytest.raises(ValueError, match=r"add --allow-remote, or keep 127\.0\.0\.1"):
        bound(host, 0, Service(monitor), Access(host))


def test_allowed_to_be_reached_it_serves_addresses_but_no_foreign_name():
    access = Access("0.0.0.0", is_remote=True)
    access.check_host("192.168.1.5:8321")
    access.check_host("[fe80::1]:8321")
    with pytest.raises(Refusal, match=r"this server is not 'evil\.example'"):
        access.check_host("evil.example:8321")


def test_looks_go_on_at_their_pace_and_are_made_into_text_once(serve):
    with queueduct.BoundedQueue.create("jobs", 4):
        server = serve(interval=0.05)
        first = server.service.queues_json()
        assert server.service.queues_json() is first or server.service.snapshot.at > json.loads(first)["at"]
        until(lambda: server.service.snapshot.at > json.loads(first)["at"] + 0.1)
