"""Finds the models: every package below models/ that declares a `CAMPAIGN` in its `__init__.py`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from types import MappingProxyType
from typing import Any, NamedTuple

import models
from models.core.campaign import Campaign


class RegisteredModel(NamedTuple):
    name: str
    """The package's, below models/: ring, events.log."""
    title: str
    """The first line of the package's docstring."""
    campaign: Campaign[Any]


@cache
def registered_models() -> Mapping[str, RegisteredModel]:
    """By name."""
    found = {}
    root = models.__name__ + "."
    for module in walk_packages(models.__path__, root):
        package = import_module(module.name) if module.ispkg else None
        campaign = getattr(package, "CAMPAIGN", None)
        if package is not None and campaign is not None:
            name = module.name.removeprefix(root)
            title = (package.__doc__ or "").splitlines()[0]
            found[name] = RegisteredModel(name, title, campaign)
    return MappingProxyType(found)
