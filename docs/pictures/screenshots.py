"""Screenshots of the page on a live scene, in build/screenshots; the chosen ones are published.

python -m docs.pictures.screenshots             needs what tools/browser.sh installs; takes half a minute
python -m docs.pictures.screenshots --publish   and copies the chosen ones to docs/pictures
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.browser import browser, missing

ROOT = Path(__file__).parents[2]
OUT = ROOT / "build" / "screenshots"
CHOSEN = ("web-queues.png", "web-queue-dark.png", "web-phone.png")
LAPTOP, LIST, PHONE = {"width": 1280, "height": 800}, {"width": 1280, "height": 340}, {"width": 390, "height": 844}
SETTLED_SECONDS = 25  # until plots have a course, and a reader is stalled


@contextmanager
def running(*command: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(10)


def shots(url: str, chromium: Any) -> None:
    def shoot(name: str, path: str, viewport: dict[str, int], theme: str, *, whole: bool = False) -> None:
        page = chromium.new_context(viewport=viewport, color_scheme=theme, device_scale_factor=1).new_page()
        page.goto(url + path)
        page.wait_for_selector(".tag.ok")
        page.wait_for_timeout(1500)
        page.screenshot(path=OUT / name, full_page=whole)
        page.context.close()

    shoot("web-queues.png", "", LIST, "light")
    shoot("web-queues-dark.png", "", LIST, "dark")
    for kind, name in (("log", "ticks"), ("slots", "camera"), ("growing", "bursts"), ("bounded", "jobs")):
        shoot(f"web-{kind}.png", f"queue/{name}", LAPTOP, "light", whole=True)
    shoot("web-queue-dark.png", "queue/ticks", LAPTOP, "dark")
    shoot("web-phone.png", "", PHONE, "light")
    shoot("web-phone-queue.png", "queue/ticks", PHONE, "dark", whole=True)


def main() -> None:
    if reason := missing():
        sys.exit(reason)
    OUT.mkdir(parents=True, exist_ok=True)
    folder = tempfile.mkdtemp(prefix="queueduct-scene-", dir="/dev/shm")
    python, command = sys.executable, str(Path(sys.executable).with_name("queueduct"))
    try:
        with (
            running(python, "-m", "docs.pictures.scene", folder, "600"),
            running(command, "web", "--port", "0", "--no-token", "--directory", folder) as server,
            browser() as chromium,
        ):
            assert server.stdout is not None
            found = re.search(r"http://\S+", server.stdout.readline())
            assert found is not None
            chromium.new_page().wait_for_timeout(SETTLED_SECONDS * 1000)
            shots(found[0], chromium)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if "--publish" in sys.argv[1:]:
        for name in CHOSEN:
            shutil.copy(OUT / name, Path(__file__).parent / name)


if __name__ == "__main__":
    main()
