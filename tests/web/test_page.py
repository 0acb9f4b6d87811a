"""The page as a person sees it: in a real browser, on real queues with processes that put, stop and are killed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import queueduct
from queueduct.monitoring.pipelines import PipelineFile
from queueduct.web.server import Server
from tests.support import browser as browsers
from tests.support.children import Children
from tests.support.deadline import until

pytestmark = [
    pytest.mark.skipif(browsers.missing() is not None, reason=browsers.missing() or ""),
    pytest.mark.timeout(120),
]

PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browsers.browser() as launched:
        yield launched


Open = Callable[..., Any]


@pytest.fixture
def page_of(chromium: Any) -> Iterator[Open]:
    """Opens a page in a fresh browser context. At the end: it has logged no error, and asked nobody but its server."""
    contexts, asked, errors = [], [], []

    def opened(server: Server, path: str = "", **given: Any) -> Any:
        context = chromium.new_context(**given)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        address, _, token = server.url.partition("#")
        page.goto(f"{address}{path}" + (f"#{token}" if token else ""))
        page.errors = errors
        return page

    yield opened
    for context in contexts:
        context.close()
    assert asked
    assert [url for url in asked if not url.startswith("http://127.0.0.1:")] == []
    assert [text for text in errors if "ERR_CONNECTION_REFUSED" not in text] == []


def cell(page: Any, queue: str, title: str) -> str:
    return str(page.locator(f'tr[data-queue="{queue}"] td[data-title="{title}"]').inner_text())


def put_for_ever(name: str) -> Callable[[], None]:
    def work() -> None:
        with queueduct.open(name) as q:
            while True:
                q.put(1.0)
                time.sleep(0.001)

    return work


def test_values_move_and_a_killed_producer_shows_within_two_seconds(serve, page_of, children: Children):
    with queueduct.OverwritingQueue.create("feed", 64, item="f8") as feed:
        page = page_of(serve(interval=0.5))
        page.wait_for_selector('tr[data-queue="feed"]')
        assert cell(page, "feed", "in/s") == "0"
        pid = children.fork(put_for_ever("feed"))
        until(lambda: cell(page, "feed", "in/s") not in ("", "0"))
        seen = set()
        until(lambda: [seen.add(cell(page, "feed", "recovered / lost")), len(seen) > 3][1], "losses that rise")
        until(lambda: cell(page, "feed", "alive") == "1")
        children.kill(pid)
        killed = time.monotonic()
        until(lambda: "gone" in cell(page, "feed", "alive") or "dead" in cell(page, "feed", "alive"))
        assert time.monotonic() - killed < 2
        until(lambda: cell(page, "feed", "in/s") == "0")
        assert feed.stats().size == 64


def test_a_reader_that_stops_turns_to_stalled_and_back(serve, page_of):
    with queueduct.EventQueue.create("ticks", item="f8") as ticks, ticks.subscribe("archive") as reader:
        page = page_of(serve())
        page.wait_for_selector('tr[data-queue="ticks"]')
        assert "ok" in cell(page, "ticks", "readers")
        ticks.put_many([1.0] * 7)
        until(lambda: "stalled" in cell(page, "ticks", "readers"))
        assert "−7" in cell(page, "ticks", "readers")
        reader.get_many(7)
        reader.commit()
        until(lambda: "ok" in cell(page, "ticks", "readers"))


def test_the_page_of_a_queue_shows_all_that_is_known_of_it(serve, page_of, children: Children, queue_dir):
    with queueduct.EventQueue.create("ticks", item="f8") as ticks, ticks.subscribe("archive", start="earliest"):
        ticks.put_once([1.0, 2.0], "feed-1", 17)
        PipelineFile(queue_dir, "ticks", "archive ticks to lake", "lake", None, "state").tell(rows=7, lag=3)
        pid = children.fork(put_for_ever("ticks"))
        page = page_of(serve(), "queue/ticks")
        page.wait_for_selector(".uplot canvas")
        assert page.locator(".uplot").count() == 6
        text = lambda: page.locator("main").inner_text()  # noqa: E731  # asked again and again
        until(lambda: str(pid) in text())
        for expected in (
            "Items a second", "Lag of each reader, in items", "Lag of each reader, in time", "Readers", "archive",
            "Participants", "Producers of put_once", "feed-1", "17", "Spark queries", "archive ticks to lake",
            "running", "Recoveries and losses since it was made", "readers_dropped", "Chunks",
        ):  # fmt: skip
            assert expected in text(), expected
        legend = page.locator(".uplot").first.locator(".u-value").nth(1)
        until(lambda: legend.inner_text() not in ("", "–", "0"), "the newest rate in the legend of the plot")
        children.kill(pid)
        until(lambda: "gone" in text())
        until(lambda: "stalled" in text())
        ticks.unlink()
        until(lambda: "This queue is gone" in text())
        page.click("text=All queues")
        page.wait_for_selector("text=No queues yet")


@pytest.mark.parametrize(
    ("make", "title"),
    [
        (lambda: queueduct.BoundedQueue.create("q", 8), "Ring"),
        (lambda: queueduct.OverwritingQueue.create("q", 8), "Ring"),
        (lambda: queueduct.GrowingQueue.create("q"), "Levels"),
        (lambda: queueduct.SlotQueue.create("q", 8), "Slots"),
    ],
)
def test_the_shape_of_every_kind_is_drawn(serve, page_of, make, title):
    with make() as q:
        q.put_many([bytes(64), bytes(64)])
        page = page_of(serve(), "queue/q")
        page.wait_for_selector(f'svg[aria-label="{title}"] .used')


def background(page: Any) -> str:
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


def test_it_is_light_or_dark_as_the_system_has_it_until_it_is_told(serve, page_of):
    with queueduct.BoundedQueue.create("jobs", 4):
        server = serve()
        light, dark = (page_of(server, color_scheme=scheme) for scheme in ("light", "dark"))
        assert (background(light), background(dark)) == ("rgb(255, 255, 255)", "rgb(16, 21, 27)")
        dark.click("#theme")
        dark.wait_for_selector("text=theme: light")
        assert background(dark) == "rgb(255, 255, 255)"
        dark.reload()
        assert background(dark) == "rgb(255, 255, 255)", "it is remembered"
        dark.click("#theme")
        assert background(dark) == "rgb(16, 21, 27)"


CONTRAST = """() => {
  const light = (color) => {
    const [r, g, b] = color.match(/[\\d.]+/g).slice(0, 3).map((part) => {
      const value = part / 255;
      return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (node) => {
    for (; node; node = node.parentElement) {
      const color = getComputedStyle(node).backgroundColor;
      if (color !== "rgba(0, 0, 0, 0)") return color;
    }
    return "rgb(255, 255, 255)";
  };
  const found = [];
  for (const node of document.querySelectorAll("body *:not(svg *):not(script)")) {
    const hasText = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
    if (!hasText || !node.offsetParent) continue;
    const [one, two] = [light(getComputedStyle(node).color), light(ground(node))];
    const contrast = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    if (contrast < 4.5) found.push(`${node.textContent.trim().slice(0, 30)}: ${contrast.toFixed(2)}`);
  }
  return found;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_read_and_every_status_has_a_word(serve, page_of, queue_dir, scheme):
    """Contrast of 4.5 and more, as WCAG AA asks for."""
    with (
        queueduct.EventQueue.create("ticks", item="f8") as ticks,
        ticks.subscribe("idle"),
        queueduct.BoundedQueue.create("jobs", 4) as jobs,
    ):
        ticks.put_many([1.0] * 7)
        ticks.subscribe("backup").close()
        jobs.shutdown()
        (queue_dir / "bad").write_bytes((queue_dir / "jobs").read_bytes()[:64])
        server = serve()
        page = page_of(server, color_scheme=scheme)
        page.wait_for_selector("text=stalled")
        assert page.locator(".tag").count() >= 4
        assert all(text.split()[1:] for text in page.locator(".tag").all_inner_texts())
        assert page.evaluate(CONTRAST) == []
        page.click('tr[data-queue="ticks"] a')
        page.wait_for_selector("text=unattended")
        assert page.evaluate(CONTRAST) == []


@pytest.mark.parametrize("path", ["", "queue/ticks"])
def test_on_a_phone_nothing_is_wider_than_the_screen(serve, page_of, path):
    with queueduct.EventQueue.create("ticks", item="f8") as ticks, ticks.subscribe("a-reader-with-a-long-name" * 2):
        ticks.put(1.0)
        page = page_of(serve(), path, viewport=PHONE)
        page.wait_for_selector("text=ticks")
        page.wait_for_selector(".tag.ok")
        widths = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert widths[0] <= widths[1]


def test_without_a_queue_it_says_how_to_make_one_and_shows_the_first(serve, page_of):
    page = page_of(serve())
    page.wait_for_selector("text=No queues yet")
    assert "BoundedQueue.create" in page.locator("pre").inner_text()
    with queueduct.BoundedQueue.create("jobs", 1024):
        page.wait_for_selector('tr[data-queue="jobs"]')


def test_a_name_is_text_and_never_markup(serve, page_of):
    name = "<img src=x onerror=document.title=1>&amp;"
    with queueduct.BoundedQueue.create(name, 4):
        page = page_of(serve())
        page.wait_for_selector("tr.row")
        assert page.locator("td.name").inner_text() == name
        page.click("td.name a")
        page.wait_for_selector("h1")
        until(lambda: name in page.locator("h1").inner_text())
        assert page.locator("img").count() == 0


def test_a_name_that_is_no_text_is_listed_beside_the_others(serve, page_of):
    with queueduct.BoundedQueue.create("odd\udcff", 4), queueduct.BoundedQueue.create("jobs", 4):
        page = page_of(serve())
        page.wait_for_selector("tr.row")
        assert page.locator("td.name").count() == 2


def test_the_table_is_sorted_by_a_click_and_keeps_the_focus(serve, page_of):
    with queueduct.BoundedQueue.create("a", 64) as a, queueduct.BoundedQueue.create("b", 4) as b:
        a.put(b"x")
        b.put_many([b"x"] * 3)
        page = page_of(serve())
        page.wait_for_selector("tr.row")
        names = lambda: page.locator("td.name").all_inner_texts()  # noqa: E731  # asked again and again
        assert names() == ["a", "b"]
        page.click("th button:text-is('depth')")
        assert names() == ["b", "a"]
        a.put_many([b"x"] * 63)
        until(lambda: names() == ["a", "b"])
        assert page.evaluate("document.activeElement.textContent") == "depth"


def test_a_server_that_ends_is_told_and_one_that_comes_back_is_found(serve, page_of):
    import threading

    from queueduct.monitoring import Monitor
    from queueduct.web.access import Access
    from queueduct.web.server import bound
    from queueduct.web.service import Service

    def started(port: int) -> tuple[Any, ...]:
        monitor = Monitor(interval=0.1)
        service = Service(monitor)
        server = bound("127.0.0.1", port, service, Access("127.0.0.1", token="the-same-token-again"))
        service.__enter__()
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        return server, service, thread, monitor

    def stop(server: Any, service: Any, thread: Any, monitor: Any) -> None:
        server.shutdown()
        thread.join()
        server.server_close()
        service.__exit__()
        monitor.close()

    with queueduct.BoundedQueue.create("jobs", 4) as q:
        parts = started(0)
        port = parts[0].server_address[1]
        page = page_of(parts[0])
        page.wait_for_selector("text=live")
        stop(*parts)
        page.wait_for_selector("text=disconnected", timeout=2500)  # the silence alone would show after three seconds
        q.put(b"a")
        parts = started(port)
        try:
            page.wait_for_selector("text=live")
            until(lambda: cell(page, "jobs", "depth").startswith("1"))
        finally:
            stop(*parts)


def test_actions_are_there_only_if_allowed_and_do_what_they_say(serve, page_of):
    with queueduct.EventQueue.create("ticks", item="f8") as ticks:
        ticks.put_many([1.0] * 10)
        page = page_of(serve(), "queue/ticks")
        page.wait_for_selector(".uplot")
        assert page.locator("button.danger").count() == 0
        page = page_of(serve(actions=True, items=True), "queue/ticks")
        page.wait_for_selector("button.danger")
        assert page.evaluate("location.hash") == "", "the token does not stay in the address"
        page.click("text=show")
        page.wait_for_selector(".items div")
        assert page.locator(".items div").count() == 10
        page.once("dialog", lambda dialog: dialog.dismiss())
        page.click("button:text-is('clear')")
        assert ticks.stats().size == 10, "it was not confirmed"
        page.on("dialog", lambda dialog: dialog.accept())
        page.click("button:text-is('clear')")
        page.wait_for_selector("text=cleared")
        assert ticks.stats().size == 0
        page.click("button:text-is('shut down')")
        until(lambda: ticks.stats().is_shut_down)


def test_a_page_without_the_token_shows_nothing_until_it_gets_it(serve, page_of):
    with queueduct.EventQueue.create("ticks", item="f8") as ticks:
        server = serve(actions=True)
        address, _, token = server.url.partition("#")
        page = page_of(server)
        page.wait_for_selector('tr[data-queue="ticks"]')
        stranger = page.context.browser.new_context().new_page()
        for path in ("", "queue/ticks", "#token=wrong"):
            stranger.goto(address + path)
            stranger.wait_for_selector("text=the token is missing or wrong: open the address")
            stranger.wait_for_selector("text=refused")
            assert "ticks" not in stranger.inner_text("main")
        stranger.evaluate("token => { location.hash = token }", token)  # as somebody who pastes it into the same tab
        stranger.wait_for_selector('tr[data-queue="ticks"]')
        other = stranger.context.new_page()
        other.goto(address + "queue/ticks")  # a queue in another tab
        other.wait_for_selector("button.danger")
        stranger.context.close()
        assert not ticks.stats().is_shut_down


def test_a_page_of_another_site_reads_and_changes_nothing(serve, page_of):
    """Its script asks this server from another origin; the browser and the server both refuse."""
    with queueduct.EventQueue.create("ticks", item="f8") as ticks:
        mine, other = serve(actions=True), serve()
        page = page_of(other)
        page.wait_for_selector("text=live")
        address = mine.url.partition("#")[0]
        tried = page.evaluate(
            """async ([url, token]) => {
              const outcomes = [];
              for (const [path, given] of [["api/queues", {}], ["api/queue/ticks/rm", { method: "POST", body: "{}",
                   headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" } }]])
                outcomes.push(await fetch(url + path, given).then((answer) => answer.status, () => "refused"));
              return outcomes;
            }""",
            [address, mine.access.token],
        )
        assert tried == ["refused", "refused"]
        assert [each.name for each in queueduct.queues()] == ["ticks"]
        assert not ticks.stats().is_shut_down
        page.errors.clear()  # the browser tells of each refusal
