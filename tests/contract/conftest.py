"""The rows that a contract runs on; support/cases.py has them all."""

from __future__ import annotations

import pytest

from tests.support.cases import CASES, EACH_ONCE, NAMED, PLAIN, PLAIN_NAMED, Case


@pytest.fixture(params=list(CASES))
def case(request: pytest.FixtureRequest) -> Case:
    """Every kind, with every type of item."""
    return CASES[request.param]


@pytest.fixture(params=EACH_ONCE)
def counted(request: pytest.FixtureRequest) -> Case:
    """A queue that is made for so many items, each for one consumer."""
    return CASES[request.param]


@pytest.fixture(params=NAMED)
def named(request: pytest.FixtureRequest) -> Case:
    """A queue that other processes can open."""
    return CASES[request.param]


@pytest.fixture(params=PLAIN)
def plain(request: pytest.FixtureRequest) -> Case:
    """Every kind, local and named, with one type of item."""
    return CASES[request.param]


@pytest.fixture(params=PLAIN_NAMED)
def plain_named(request: pytest.FixtureRequest) -> Case:
    """Every kind that other processes can open, with one type of item."""
    return CASES[request.param]
