"""What every campaign of the edges gets: in the long form, on a machine of its own, a moment is what is promised."""

from __future__ import annotations

import pytest

PROMISED_SECONDS = 0.25
MOMENTS = ("PROMPTLY_SECONDS", "SLOW_SECONDS")  # of modules: in the short form they only tell a wait from a hang


@pytest.fixture(autouse=True)
def promised_moments(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, is_long: bool) -> None:
    if is_long:
        for moment in MOMENTS:
            if hasattr(request.module, moment):
                monkeypatch.setattr(request.module, moment, PROMISED_SECONDS)
