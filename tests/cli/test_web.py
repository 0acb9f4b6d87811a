"""``queueduct web`` as a command: what it prints, and how it ends."""

from __future__ import annotations

import http.client
import re
import signal
import socket
import subprocess

import pytest
from click.testing import CliRunner

import queueduct
from queueduct.cli import main
from tests.support.children import environment
from tests.support.terminal import COMMAND


def start(*options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [COMMAND, "web", "--port", "0", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(PYTHONUNBUFFERED="1"),
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_prints_its_address_and_ends_at_once_although_a_viewer_is_there(number):
    with queueduct.BoundedQueue.create("jobs", 4), start() as process:
        told = process.stdout.readline()
        port, token = re.search(r"http://127\.0\.0\.1:(\d+)/#token=([\w-]{43}) ", told).groups()
        viewer = http.client.HTTPConnection("127.0.0.1", int(port), timeout=20)
        viewer.request("GET", "/api/events", headers={"Authorization": f"Bearer {token}"})
        assert viewer.getresponse().readline() == b"retry: 1000\n"
        process.send_signal(number)
        out, errors = process.communicate(timeout=10)
        viewer.close()
    assert (process.returncode, out, errors) == (0, "", "stopped\n")


@pytest.mark.parametrize(
    ("options", "address"),
    [
        ((), r"/#token=[\w-]{43} "),
        (("--no-token",), r"/ "),
        (("--no-token", "--allow-actions"), r"/#token=[\w-]{43} "),
        (("--token-file", "{}/mine"), r"/#token=this-is-my-own-token "),
    ],
)
def test_the_address_has_a_token_if_anything_needs_one(options, address, tmp_path):
    (tmp_path / "mine").write_text("this-is-my-own-token\n")
    (tmp_path / "mine").chmod(0o600)
    with start(*(option.format(tmp_path) for option in options)) as process:
        assert re.search(r"http://127\.0\.0\.1:\d+" + address, process.stdout.readline())
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=10)


def call(*arguments):
    return CliRunner().invoke(main, ["web", *arguments])


def test_a_port_in_use_is_one_clear_line_and_its_remedy_works():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = call("--port", str(taken.getsockname()[1]))
    assert result.exit_code == 1
    assert result.output.startswith("Error: ")
    assert "is in use, perhaps by another queueduct web; try --port" in result.output


def test_an_address_that_others_reach_is_refused():
    result = call("--port", "0", "--host", "0.0.0.0")
    assert result.exit_code == 1
    assert "--allow-remote" in result.output


def test_a_host_that_is_not_there_is_one_clear_line():
    result = call("--port", "0", "--host", "203.0.113.7", "--allow-remote")
    assert result.exit_code == 1
    assert result.output.startswith("Error: ")
