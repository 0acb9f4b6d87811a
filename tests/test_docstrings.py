"""Every public name says what it does, and every public call shows it by an example that runs here.

By rule, an example is not asked of what is no call (properties and attributes), of exceptions, and of the named tuples
that calls return. Names that are the standard library's own are its own to document.
"""

from __future__ import annotations

import doctest
import gc
import importlib
import inspect
import multiprocessing
import os
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import queueduct

MODULES = ("queueduct", "queueduct.multiprocessing", "queueduct.queue", "queueduct.pool", "queueduct.logging")
MODULES_OF_EXTRAS = {"queueduct.arrow": "pyarrow", "queueduct.torch": "numpy"}
NEEDED = {"arrow": "pyarrow", "import torch": "torch"}  # what an example with this word imports, and no requirement is
FLAGS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL  # an exception's text is no part of an example


def is_ours(thing: Any) -> bool:
    return str(getattr(thing, "__module__", "")).split(".")[0] == "queueduct"


def is_call(thing: Any) -> bool:
    if isinstance(thing, type):
        return not issubclass(thing, Exception) and not is_row(thing)
    return callable(thing) and thing.__qualname__.partition(".")[0] not in dir(queueduct.errors)


def is_row(thing: type) -> bool:
    return issubclass(thing, tuple) and hasattr(thing, "_fields")


def modules() -> Iterator[ModuleType]:
    for name in (*MODULES, *MODULES_OF_EXTRAS):
        try:
            yield importlib.import_module(name)
        except ImportError as error:
            assert error.name == MODULES_OF_EXTRAS.get(name)


def members(cls: type) -> Iterator[tuple[str, Any]]:
    """The public members of a class, by the base that defines them: what kinds share is there once."""
    for base in cls.__mro__:
        if is_ours(base) and not is_row(base):
            for name, value in vars(base).items():
                if not name.startswith("_") and not isinstance(value, (int, str, float, type(None))):
                    found = value if inspect.isdatadescriptor(value) else getattr(base, name)
                    yield f"{base.__module__}.{base.__qualname__}.{name}", found


def public() -> dict[str, Any]:
    """Every public thing: the modules themselves, functions, classes, their calls and properties."""
    found: dict[str, Any] = {}
    for module in modules():
        found[module.__name__] = module
        for name in module.__all__:
            thing = getattr(module, name)
            if not is_ours(thing):
                continue
            found[f"{thing.__module__}.{thing.__qualname__}"] = thing
            if isinstance(thing, type):
                found.update(members(thing))
    return found


PUBLIC = public()
CALLS = sorted(name for name, thing in PUBLIC.items() if is_call(thing))
WITH_EXAMPLES = sorted(name for name, thing in PUBLIC.items() if ">>>" in (inspect.getdoc(thing) or ""))


def examples_of(name: str) -> list[doctest.Example]:
    return doctest.DocTestParser().get_examples(inspect.getdoc(PUBLIC[name]) or "", name)


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_everything_public_says_what_it_does(name: str) -> None:
    text = inspect.getdoc(PUBLIC[name])
    assert text, f"{name} has no docstring"
    first = text.splitlines()[0]
    assert not first.startswith((">>>", name.rpartition(".")[2] + "(")), f"{name} begins with no sentence: {first}"
    assert "\n--\n" not in text


@pytest.mark.parametrize("name", CALLS)
def test_every_public_call_has_a_short_example(name: str) -> None:
    examples = examples_of(name)
    assert examples, f"{name} has no example"
    assert sum(example.source.count("\n") for example in examples) <= 12


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_an_example_runs_in_an_empty_directory_and_leaves_nothing_behind(name: str) -> None:
    examples = examples_of(name)
    source = "".join(example.source for example in examples)
    for word, module in NEEDED.items():
        if word in source or word in name:
            pytest.importorskip(module, reason=f"{module} is no requirement")
    assert "sleep" not in source
    assert queueduct.queues() == []
    before = set(threading.enumerate())
    test = doctest.DocTest(examples, {"queueduct": queueduct, "np": np}, name, None, None, None)
    told: list[str] = []
    outcome = doctest.DocTestRunner(verbose=False, optionflags=FLAGS).run(test, out=told.append)
    assert outcome.failed == 0, "".join(told)
    assert outcome.attempted == len(examples)
    gc.collect()
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
        assert not thread.is_alive(), f"{thread} is left"
    assert multiprocessing.active_children() == []
    assert os.listdir(os.environ["QUEUEDUCT_DIR"]) == []


def test_the_walk_finds_what_users_call() -> None:
    calls = {".".join(name.rsplit(".", 2)[1:]) for name in CALLS}
    assert {"Queue.put", "Queue.open", "EventQueue.create", "Reader.get", "TakenSlot.copy", "Lease.release"} <= calls
    assert {"LeaseMethods.lease", "AsyncGets.aget", "Workers.submit", "Watch.stats", "JoinableQueue.join"} <= calls
    assert {"catalog.open", "watch.watch", "QueueListener.start"} <= calls
    assert len(WITH_EXAMPLES) >= len(CALLS) > 150
    assert "queueduct.core._queue.Queue.name" in set(PUBLIC) - set(CALLS)


def test_help_of_the_package_names_every_kind_of_queue_and_every_module() -> None:
    text = inspect.getdoc(queueduct) or ""
    for word in ("BoundedQueue", "GrowingQueue", "OverwritingQueue", "SlotQueue", "EventQueue", "Workers", "watch"):
        assert word in text
    for module in (*MODULES, *MODULES_OF_EXTRAS):
        assert module in text or module == "queueduct.pool"  # its names are the package's
