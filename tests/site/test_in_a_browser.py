"""The built pages in a real browser: they ask no host, fit on a phone, and have a dark form."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.browser import browser, missing

pytestmark = pytest.mark.timeout(400)  # the first one waits for the build, on a machine that may be busy

PAGES = ("index.html", "jobs.html", "reference/api/BoundedQueue.html", "reference/command.html")
SIZES = {"laptop": {"width": 1280, "height": 800}, "phone": {"width": 390, "height": 844}}


def test_pages_load_from_this_host_only_and_fit(site: Path) -> None:
    if reason := missing():
        pytest.skip(reason)
    backgrounds = {}
    with browser() as chromium:
        for theme, size in (("light", "laptop"), ("dark", "phone")):
            context = chromium.new_context(viewport=SIZES[size], color_scheme=theme)
            tab = context.new_page()
            asked: list[str] = []
            said: list[str] = []
            tab.on("request", lambda request, asked=asked: asked.append(request.url))
            tab.on("console", lambda message, said=said: said.append(message.text))
            tab.on("pageerror", lambda error, said=said: said.append(str(error)))
            for name in PAGES:
                tab.goto((site / name).as_uri())
                assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), f"{name} on a {size}"
            assert len(asked) > len(PAGES)
            assert [url for url in asked if not url.startswith(("file://", "data:"))] == []
            assert said == []
            backgrounds[theme] = tab.evaluate("getComputedStyle(document.body).backgroundColor")
            context.close()
    assert backgrounds["light"] != backgrounds["dark"]
