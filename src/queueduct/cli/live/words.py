"""Numbers and statuses as a person reads them, in the width of a column."""

from __future__ import annotations

from queueduct.monitoring import QueueSeen, State, Status

__all__ = ["STATUS_STYLES", "age", "bar", "count", "memory", "shown", "state_style"]

STATUS_STYLES = {
    Status.OK: "green",
    Status.UNKNOWN: "dim",
    Status.UNATTENDED: "yellow",
    Status.BEHIND: "yellow",
    Status.STALLED: "bold red",
    Status.DROPPED: "bold red",
}
BLOCKS = " ▏▎▍▌▋▊▉█"


def count(number: float) -> str:
    """A count or a rate in at most six characters: 12, 9.5k, 1.25M."""
    if 0 < abs(number) < 10 and number != int(number):
        return f"{number:.1f}"
    for unit, size in (("", 1), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)):
        scaled = number / size
        if abs(scaled) < 999.5 or unit == "T":
            digits = 0 if not unit or abs(scaled) >= 99.5 else 1 if abs(scaled) >= 9.95 else 2
            return f"{scaled:.{digits}f}{unit}"
    return ""


def memory(size: float) -> str:
    """Bytes in at most seven characters."""
    for unit, scale in (("B", 1), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9)):
        if size < 999.5 * scale or unit == "GB":
            return f"{size / scale:.{0 if unit == 'B' or size >= 99.5 * scale else 1}f} {unit}"
    return ""


def age(seconds: float, *, is_longer: bool = False) -> str:
    """How long ago something was, in at most seven characters."""
    more = ">" if is_longer else ""
    if seconds < 0.9995:
        return f"{more}{seconds * 1e3:.0f} ms"
    if seconds < 99.5:
        return f"{more}{seconds:.{1 if seconds < 9.95 else 0}f} s"
    if seconds < 5970:
        return f"{more}{seconds / 60:.0f} min"
    return f"{more}{seconds / 3600:.0f} h" if seconds < 3600 * 99 else f"{more}{seconds / 86400:.0f} d"


def bar(share: float, width: int, *, in_ascii: bool = False) -> str:
    """A bar of that width, filled from the left; anything above nothing shows."""
    if in_ascii:
        full = min(width, max(round(share * width), 1 if share > 0 else 0))
        return "#" * full + "." * (width - full)
    eighths = min(8 * width, max(round(share * 8 * width), 1 if share > 0 else 0))
    full, part = divmod(eighths, 8)
    return ("█" * full + (BLOCKS[part] if part else "")).ljust(width)


def state_style(queue: QueueSeen) -> str:
    return {State.OPEN: "", State.SHUT_DOWN: "dim"}.get(queue.state, "bold red")


def shown(text: str) -> str:
    """A name or a message of somebody else's, in one line and harmless to a terminal: any process may have made it."""
    return "".join(each if each.isprintable() else "�" for each in text)
