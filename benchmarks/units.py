"""How a value is written for people."""

_LARGE = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_SMALL = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def written(value: float, unit: str) -> str:
    """Write a value with three digits and the prefix that suits it."""
    scale, name = _scale_of(value, unit)
    return f"{digits(value / scale)} {name}"


def tick(value: float, unit: str) -> str:
    """Write a power of ten for the scale of a plot."""
    scale, name = _scale_of(value * 1.0001, unit)
    return f"{value / scale:g} {name.removesuffix(' of a core')}"


def spread(least: float, most: float, median: float, unit: str) -> str:
    """Write two values in the scale of a third."""
    scale, _ = _scale_of(median, unit)
    return f"{digits(least / scale)} .. {digits(most / scale)}"


def _scale_of(value: float, unit: str) -> tuple[float, str]:
    if unit == "s":
        return next((s for s in _SMALL if value >= s[0]), _SMALL[-1])
    if unit.endswith("/s"):
        scale, prefix = next((s for s in _LARGE if value >= s[0]), _LARGE[-1])
        return scale, prefix + ("B/s" if unit == "bytes/s" else "/s")
    return 1.0, unit


def digits(value: float) -> str:
    """Write three digits, without an exponent for anything a person would read."""
    if value >= 100:
        return f"{value:.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 0.01 or value == 0 else f"{value:.1g}"
