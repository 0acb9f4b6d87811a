"""How long a call may wait: the one check of every ``timeout=``."""

from __future__ import annotations

import math

__all__ = ["checked_timeout"]


def checked_timeout(timeout: float | None) -> float:
    """Returns the seconds; 0 for None."""
    if timeout is None:
        return 0.0
    rule = "timeout must be a non-negative number or None"
    if not (hasattr(type(timeout), "__float__") or hasattr(type(timeout), "__index__")):
        raise TypeError(f"{rule}: timeout={timeout!r}")
    try:
        seconds = float(timeout)
    except TypeError as error:  # an array of several numbers, say
        raise TypeError(f"{rule}: timeout={timeout!r}") from error
    except OverflowError:  # a whole number that no float holds
        seconds = math.inf if timeout > 0 else -math.inf
    if not seconds >= 0:
        raise ValueError(f"{rule}: timeout={timeout!r}")
    return seconds
