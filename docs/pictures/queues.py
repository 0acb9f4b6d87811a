"""Draw queues.svg: producers, the five kinds of queue, consumers and Spark. ``python -m docs.pictures.queues``."""

from __future__ import annotations

from pathlib import Path

from docs.pictures.svg import Canvas

PATH = Path(__file__).with_suffix(".svg")
LANES = (
    ("BoundedQueue", "a full queue makes producers wait"),
    ("GrowingQueue", "4 kB to 4 GB and back, by its load"),
    ("OverwritingQueue", "the newest replaces the oldest"),
    ("SlotQueue", "big frames, filled and read in place"),
    ("EventQueue", "a log: every reader has its position"),
)
TOP, LANE = 66, 62  # the first lane, and the distance between lanes
LEFT, RIGHT = 190, 690  # the edges of the shared memory
CELL = 15


def draw() -> str:
    """Return the picture."""
    canvas = Canvas(
        900, 472, "Producers put items into one of five kinds of queue; consumers, readers and Spark get them"
    )
    bottom = TOP + LANE * len(LANES)
    canvas.box(LEFT, 20, RIGHT - LEFT, bottom - 18, "panel", edge="edge", round=10)
    canvas.write(
        (LEFT + RIGHT) / 2,
        44,
        "one shared memory segment a queue, opened by its name",
        "faint",
        size=13,
        style="middle",
    )
    for at, (name, note) in enumerate(LANES):
        y = TOP + LANE * at
        canvas.box(LEFT + 14, y, RIGHT - LEFT - 28, LANE - 12, "paper", edge="edge")
        canvas.write(LEFT + 28, y + 22, name, "ours", size=15, style="bold")
        canvas.write(LEFT + 28, y + 40, note, "faint", size=12)
        GLYPHS[at](canvas, RIGHT - 28 - 13 * CELL, y + 19)
    producers(canvas)
    consumers(canvas)
    spark(canvas, bottom + 36)
    return canvas.text()


def cells(canvas: Canvas, x: float, y: float, looks: str) -> None:
    """Draw a row of slots: # holds an item, o is being overwritten, . is free, - has no memory yet."""
    names = {"#": ("ours", ""), "o": ("warm", ""), ".": ("paper", "edge"), "-": ("none", "edge-")}
    for at, look in enumerate(looks):
        fill, edge = names[look]
        canvas.box(x + at * CELL, y, CELL - 3, CELL - 3, fill, edge=edge, round=2)


def bounded(canvas: Canvas, x: float, y: float) -> None:
    cells(canvas, x + 5 * CELL, y, ".#####..")


def growing(canvas: Canvas, x: float, y: float) -> None:
    for shift, looks in ((0, "#"), (1.5, "####"), (6, "-------")):
        cells(canvas, x + shift * CELL, y, looks)


def overwriting(canvas: Canvas, x: float, y: float) -> None:
    cells(canvas, x + 5 * CELL, y, "###o####")
    middle, right = x + 8.4 * CELL, x + 12.4 * CELL
    canvas.line(
        f"M{right:g} {y - 2:g} C{right:g} {y - 13:g} {middle:g} {y - 13:g} {middle:g} {y - 3:g}",
        "warm",
        arrow=True,
        width=1.2,
    )


def slots(canvas: Canvas, x: float, y: float) -> None:
    for at, (look, edge) in enumerate((("ours", ""), ("ours", ""), ("paper", "edge"))):
        canvas.box(x + 4 * CELL + at * 46, y - 7, 40, 26, look, edge=edge, round=3)


def events(canvas: Canvas, x: float, y: float) -> None:
    cells(canvas, x, y - 4, "#############")
    for at in (3, 8, 12):
        middle = x + at * CELL + (CELL - 3) / 2
        canvas.shape(f"M{middle:g} {y + 11:g} l5 8 h-10 z", "warm")


GLYPHS = (bounded, growing, overwriting, slots, events)


def middle_of(lane: int) -> float:
    return TOP + LANE * lane + (LANE - 12) / 2


def producers(canvas: Canvas) -> None:
    """Draw the left side: any number of processes and threads that put."""
    for lane, note in ((0.5, "process"), (2, "process"), (3.5, "thread")):
        y = middle_of(0) + LANE * lane
        canvas.box(20, y - 24, 104, 48, "paper", edge="ours")
        canvas.write(72, y - 3, "producer", style="middle bold")
        canvas.write(72, y + 14, note, "faint", size=12, style="middle")
        canvas.line(f"M128 {y:g} H{LEFT - 4}", "ours", width=2, arrow=True)
    canvas.write(156, middle_of(2) - 10, "put", "faint", size=12, style="middle mono")


def consumers(canvas: Canvas) -> None:
    """Draw the right side: each item to one consumer, or every item to every reader."""
    first, last = middle_of(0), middle_of(3)
    canvas.line(f"M{RIGHT + 4} {(first + last) / 2:g} H{RIGHT + 40}", "ours", width=2)
    for y in (first + 22, (first + last) / 2, last - 22):
        canvas.line(f"M{RIGHT + 40} {(first + last) / 2:g} V{y:g} H{RIGHT + 68}", "ours", width=2, arrow=True)
        canvas.box(RIGHT + 72, y - 17, 110, 34, "paper", edge="ours")
        canvas.write(RIGHT + 127, y + 5, "consumer", style="middle bold")
    canvas.write(RIGHT + 127, first - 8, "each item to one", "faint", size=12, style="middle")
    canvas.write(RIGHT + 22, (first + last) / 2 - 10, "get", "faint", size=12, style="middle mono")
    y = middle_of(4)
    canvas.line(f"M{RIGHT + 4} {y:g} H{RIGHT + 40}", "ours", width=2)
    for shift in (-14, 14):
        canvas.line(f"M{RIGHT + 40} {y:g} V{y + shift:g} H{RIGHT + 68}", "ours", width=2, arrow=True)
        canvas.box(RIGHT + 72, y + shift - 11, 110, 22, "paper", edge="ours")
        canvas.write(RIGHT + 127, y + shift + 5, "reader", size=13, style="middle bold")
    canvas.write(RIGHT + 127, y + 44, "each item to all", "faint", size=12, style="middle")


def spark(canvas: Canvas, y: float) -> None:
    """Draw Spark below: it reads and writes all five."""
    middle = (LEFT + RIGHT) / 2
    canvas.line(f"M{middle - 14:g} {y - 6:g} V{y - 32:g}", "warm", width=2, arrow=True)
    canvas.line(f"M{middle + 14:g} {y - 34:g} V{y - 7:g}", "warm", width=2, arrow=True)
    canvas.box(LEFT, y - 4, RIGHT - LEFT, 44, "paper", edge="warm")
    canvas.write(LEFT + 18, y + 23, "Spark", "warm", size=15, style="bold")
    canvas.write(LEFT + 72, y + 23, 'reads and writes all five: format("queueduct")', "faint", size=13)
    canvas.line(f"M{RIGHT + 4} {y + 18:g} H{RIGHT + 68}", "warm", width=2, arrow=True)
    canvas.box(RIGHT + 72, y + 1, 110, 34, "paper", edge="warm")
    canvas.write(RIGHT + 127, y + 23, "Parquet, …", style="middle bold")


if __name__ == "__main__":
    PATH.write_text(draw(), encoding="utf-8")
    print(f"{PATH} drawn")
