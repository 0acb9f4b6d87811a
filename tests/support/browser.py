"""A real browser: Debian's chromium, driven by Playwright. It has a profile of its own, and asks nobody anything."""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-features=OptimizationHints,MediaRouter,Translate",
    "--metrics-recording-only",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1",
]


def missing() -> str | None:
    """Says what is not installed, or None."""
    if importlib.util.find_spec("playwright") is None:
        return "playwright is not installed: make test installs it where it can, as does tools/browser.sh"
    if chromium() is None:
        return "there is no chromium: make test installs Debian's as root, as does tools/browser.sh"
    return None


def chromium() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser")


@contextlib.contextmanager
def browser() -> Iterator[Any]:
    """A browser for several pages; each ``new_context()`` of it is like a browser just installed."""
    from playwright.sync_api import sync_playwright

    folder = tempfile.mkdtemp(prefix="queueduct-test-chromium-")
    try:
        with sync_playwright() as playwright:
            launched = playwright.chromium.launch(
                executable_path=chromium(), headless=True, args=[*FLAGS, f"--crash-dumps-dir={folder}"]
            )
            try:
                yield launched
            finally:
                launched.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
