"""Draw kills.svg, recovery.svg, lease.svg: what a kill leaves, who settles it. ``python -m docs.pictures.crashes``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from docs.pictures.svg import Canvas

HERE = Path(__file__).parent
WIDTH = 900


def kills() -> str:
    """Return the steps of a put, the slot's state below each, and what a kill between two of them leaves."""
    canvas = Canvas(WIDTH, 300, "The steps of a put: intent, claim, copy, publish; and what a kill leaves after each")
    steps = (
        ("1 intent", "one store", "free"),
        ("2 claim", "compare-and-swap", "claimed"),
        ("3 copy", "only the owner writes", "claimed"),
        ("4 publish", "one store", "item"),
    )
    left, width, gap = 30, 170, 50
    canvas.write(left, 34, "a producer's put", "ours", size=15, style="bold")
    for at, (name, note, state) in enumerate(steps):
        x = left + at * (width + gap)
        canvas.box(x, 50, width, 56, "panel", edge="ours")
        canvas.write(x + width / 2, 74, name, style="middle bold")
        canvas.write(x + width / 2, 93, note, "faint", size=12, style="middle")
        look, edge = {"free": ("paper", "edge"), "claimed": ("soft", ""), "item": ("ours", "")}[state]
        canvas.box(x + width / 2 - 16, 122, 32, 32, look, edge=edge, round=4)
        canvas.write(x + width / 2, 172, f"the slot: {state}", "faint", size=12, style="middle")
        if at:
            canvas.line(f"M{x - gap + 4:g} 78 H{x - 4:g}", "ours", width=2, arrow=True)
    outcomes = (
        (left, left + width + gap / 2, "killed here:", "nothing has happened"),
        (
            left + width + gap / 2 + 8,
            left + 3 * (width + gap) - gap / 2,
            "killed here:",
            "the slot is abandoned, and consumers skip it",
        ),
        (left + 3 * (width + gap) - gap / 2 + 8, WIDTH - left, "killed here:", "the item is in"),
    )
    for start, end, when, what in outcomes:
        canvas.line(f"M{start:g} 200 V192 H{end:g} V200", "warm", width=1.6)
        canvas.write((start + end) / 2, 226, when, "warm", size=13, style="middle bold")
        canvas.write((start + end) / 2, 246, what, "ink", size=13, style="middle")
    canvas.write(
        WIDTH / 2, 282, "no moment leaves half an item, or a slot without an owner", "faint", size=13, style="middle"
    )
    return canvas.text()


def recovery() -> str:
    """Return a recoverer that settles a dead participant's claim."""
    canvas = Canvas(WIDTH, 330, "A recoverer reads the claim of a participant, asks the kernel, and abandons the slot")
    canvas.box(30, 30, 250, 170, "panel", edge="edge", round=10)
    canvas.write(46, 54, "participants", "ours", size=15, style="bold")
    for at, (name, claim, look) in enumerate(
        (("A", "claims nothing", "ink"), ("B", "claims slot 17", "warm"), ("C", "claims slot 18", "ink"))
    ):
        canvas.box(46, 66 + at * 42, 218, 34, "paper", edge="warm" if name == "B" else "edge")
        canvas.write(62, 88 + at * 42, name, look, style="bold")
        canvas.write(90, 88 + at * 42, claim, look, size=13)
    canvas.box(330, 30, 330, 170, "panel", edge="edge", round=10)
    canvas.write(346, 54, "slots", "ours", size=15, style="bold")
    for at in range(6):
        x, position = 350 + at * 49, 15 + at
        look, edge = ("paper", "warm-") if position == 17 else (("ours", "") if position < 19 else ("paper", "edge"))
        canvas.box(x, 84, 42, 42, look, edge=edge, round=4)
        canvas.write(x + 21, 78, str(position), "warm" if position == 17 else "faint", size=12, style="middle mono")
    canvas.write(644, 54, "17 was claimed, never published", "faint", size=12, style="end")
    canvas.box(710, 30, 160, 170, "panel", edge="edge", round=10)
    canvas.write(726, 54, "the kernel", "ours", size=15, style="bold")
    for at, (name, state) in enumerate((("A", "lock held"), ("B", "lock gone"), ("C", "lock held"))):
        look = "warm" if name == "B" else "ink"
        canvas.write(730, 94 + at * 36, name, look, style="bold")
        canvas.write(756, 94 + at * 36, state, look, size=13)
    canvas.box(330, 262, 330, 46, "paper", edge="ours")
    canvas.write(495, 290, "recoverer: any participant that waits", style="middle bold", size=13)
    canvas.line("M326 285 H155 V206", "ours", width=2, arrow=True)
    canvas.write(240, 276, "1 whose is slot 17?", "faint", size=13, style="middle")
    canvas.line("M664 285 H790 V206", "ours", width=2, arrow=True)
    canvas.write(726, 276, "2 does B live?", "faint", size=13, style="middle")
    canvas.line("M469 258 V132", "warm", width=2, arrow=True)
    canvas.write(482, 232, "3 compare-and-swap: abandoned", "warm", size=13)
    return canvas.text()


def lease() -> str:
    """Return a get beside a lease: when the item leaves the queue."""
    canvas = Canvas(
        WIDTH, 270, "A get takes the item before the work, a lease after it; so a kill loses it or brings it back"
    )
    rows = (
        (40, "get", 1, "killed while it works: the item is lost"),
        (156, "lease", 2, "killed while it works: another consumer gets the item"),
    )
    for y, name, leaves_after, said in rows:
        canvas.write(30, y + 28, name, "ours", size=15, style="bold mono")
        parts = (("claim", 120, 150), ("work", 320, 340), ("done", 710, 150))
        for at, (word, x, width) in enumerate(parts):
            look = "panel" if word == "work" else "paper"
            canvas.box(x, y, width, 44, look, edge="ours")
            canvas.write(x + width / 2, y + 27, word, style="middle")
            if at:
                before = parts[at - 1]
                canvas.line(f"M{before[1] + before[2] + 4:g} {y + 22} H{x - 4:g}", "ours", width=2, arrow=True)
        x = 295 if leaves_after == 1 else 685
        canvas.line(f"M{x} {y - 16} V{y + 56}", "warm", width=2)
        canvas.write(x, y - 20, "leaves the queue: one store", "warm", size=12, style="middle")
        canvas.write(490, y + 66, said, "ink", size=13, style="middle")
    return canvas.text()


PICTURES: dict[Path, Callable[[], str]] = {HERE / f"{draw.__name__}.svg": draw for draw in (kills, recovery, lease)}


if __name__ == "__main__":
    for path, draw in PICTURES.items():
        path.write_text(draw(), encoding="utf-8")
        print(f"{path} drawn")
