"""A small canvas for the pictures of the documentation: plain SVG, with one palette for light and one for dark.

A picture has its own background, so that it is readable wherever it is shown. The browser chooses the palette by
``prefers-color-scheme``; a program that knows nothing of it shows the light one.
"""

from __future__ import annotations

from html import escape

FONT = "ui-sans-serif, system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"

# name: (light, dark). Classes set the fill of shapes and of text; `line-NAME` sets the stroke of lines.
PALETTE = {
    "paper": ("#ffffff", "#0d1117"),
    "panel": ("#f3f6f8", "#161d26"),
    "edge": ("#cfd8de", "#38424d"),
    "ink": ("#1f2933", "#e6edf3"),
    "faint": ("#5c6b78", "#9aa7b4"),
    "ours": ("#0b7285", "#35b6cc"),
    "soft": ("#8fcbd6", "#1c6675"),
    "peer": ("#b4bfc8", "#56626e"),
    "warm": ("#d9480f", "#ff9455"),
}


class Canvas:
    """Collects shapes; ``text()`` of the whole is the picture."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.width, self.height, self.title = width, height, title
        self.shapes: list[str] = []

    def box(
        self, x: float, y: float, width: float, height: float, look: str, *, edge: str = "", round: float = 6
    ) -> None:
        """Draw a filled rectangle; ``edge`` names the colour of its outline, a trailing ``-`` makes that dashed."""
        outline = f' class="{look}"' if not edge else f' class="{look} line-{edge.rstrip("-")}" stroke-width="1.2"'
        dashes = ' stroke-dasharray="4 3"' if edge.endswith("-") else ""
        at = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{round:g}"'
        self.shapes.append(f"<rect {at}{outline}{dashes}/>")

    def write(self, x: float, y: float, text: str, look: str = "ink", *, size: float = 14, style: str = "") -> None:
        """Write a line of text; ``style`` has any of the words bold, mono, middle, end."""
        words = style.split()
        extra = ' font-weight="600"' if "bold" in words else ""
        extra += f' font-family="{MONO}"' if "mono" in words else ""
        extra += next((f' text-anchor="{word}"' for word in words if word in ("middle", "end")), "")
        self.shapes.append(
            f'<text x="{x:g}" y="{y:g}" class="{look}" font-size="{size:g}"{extra}>{escape(text)}</text>'
        )

    def line(self, path: str, look: str, *, width: float = 1.5, arrow: bool = False) -> None:
        """Draw an open path, with an arrow's head at its end."""
        head = f' marker-end="url(#{look})"' if arrow else ""
        self.shapes.append(f'<path d="{path}" class="none line-{look}" stroke-width="{width:g}"{head}/>')

    def shape(self, path: str, look: str) -> None:
        """Fill a closed path."""
        self.shapes.append(f'<path d="{path}" class="{look}"/>')

    def text(self) -> str:
        """Return the picture as the text of an SVG file."""
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
                f'width="{self.width}" height="{self.height}" font-family="{FONT}" role="img">',
                f"<title>{escape(self.title)}</title>",
                f"<style>\n{_styles(0)}\n@media (prefers-color-scheme: dark) {{\n{_styles(1)}\n}}\n</style>",
                "<defs>",
                *(_head(name) for name in ("ours", "warm")),
                "</defs>",
                f'<rect width="{self.width}" height="{self.height}" rx="10" class="paper"/>',
                *self.shapes,
                "</svg>\n",
            ]
        )


def _styles(scheme: int) -> str:
    rules = [".none { fill: none }"] if scheme == 0 else []
    for name, colours in PALETTE.items():
        rules.append(f".{name} {{ fill: {colours[scheme]} }} .line-{name} {{ stroke: {colours[scheme]} }}")
    return "\n".join(rules)


def _head(name: str) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        f'orient="auto"><path d="M0 0.6 L8 4 L0 7.4 z" class="{name}"/></marker>'
    )
