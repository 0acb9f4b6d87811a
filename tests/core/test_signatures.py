"""help(), inspect.signature() and editors show every public call as the stub has it."""

from __future__ import annotations

import ast
import importlib.util
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import queueduct
import queueduct.logging
import queueduct.multiprocessing
import queueduct.queue
import queueduct.torch

MODULES = (queueduct, queueduct.multiprocessing, queueduct.queue, queueduct.logging, queueduct.torch)
UNMADE = {"OverwritingQueue", "SlotQueue", "Reader", "LoanedSlot", "TakenSlot"}  # a call of the class raises


def is_ours(thing: Any) -> bool:
    return (getattr(thing, "__module__", None) or "queueduct").startswith("queueduct")  # C's calls do not say theirs


def public_calls() -> Iterator[tuple[str, Any, type | None]]:
    for module in MODULES:
        within = module.__name__.removeprefix("queueduct").removeprefix(".")
        for name in sorted(module.__all__):
            found = getattr(module, name)
            label = f"{within}.{name}" if within else name
            if not is_ours(found):
                continue
            if not inspect.isclass(found):
                if callable(found):
                    yield label, found, None
                continue
            if issubclass(found, Exception):
                continue
            if name not in UNMADE:
                yield label, found, found
            for attribute in dir(found):
                call = getattr(found, attribute)
                if not attribute.startswith("_") and callable(call) and is_ours(call):
                    yield f"{label}.{attribute}", call, found


CALLS = {name: (call, owner) for name, call, owner in public_calls()}
CLASSES = {name: owner for name, (_, owner) in CALLS.items() if owner is not None and name.endswith(owner.__name__)}
MANAGERS = sorted(name for name, owner in CLASSES.items() if hasattr(owner, "__exit__"))


def source_of(module: str) -> ast.Module:
    """The stub of a module, or its source if it has none; nothing of a private base, which its heir's stub declares."""
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    path = Path(spec.origin)
    stub = path.with_name(module.rpartition(".")[2] + ".pyi")
    if not stub.exists() and path.suffix != ".py":
        return ast.Module([], [])
    return ast.parse((stub if stub.exists() else path).read_text())


def declared(name: str, call: Any, owner: type | None) -> list[ast.FunctionDef]:
    """The declarations of a call, one or its overloads, in the stub of its class or of the nearest base that has it."""
    if owner is None:
        nodes: list[ast.stmt] = source_of(call.__module__).body
        return [node for node in nodes if isinstance(node, ast.FunctionDef) and node.name == name]
    wanted = ("__init__", "__new__") if isinstance(call, type) else (name.rpartition(".")[2],)
    for base in owner.__mro__:
        if not base.__module__.startswith("queueduct"):
            continue
        classes = [node for node in source_of(base.__module__).body if isinstance(node, ast.ClassDef)]
        body = next((node.body for node in classes if node.name == base.__name__), [])
        if found := [node for node in body if isinstance(node, ast.FunctionDef) and node.name in wanted]:
            return found
    return []


def parameters_of(node: ast.FunctionDef) -> list[tuple[str, bool, object]]:
    """Names, whether they are keyword-only, and defaults: the text of a literal, or "none" without one."""
    positional = node.args.args
    defaults = [None] * (len(positional) - len(node.args.defaults)) + list(node.args.defaults)
    found = [(each.arg, False, value) for each, value in zip(positional, defaults, strict=True)]
    found += [(each.arg, True, value) for each, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)]
    if found and found[0][0] in ("self", "cls"):
        del found[0]
    return [(name, by_name, "none" if value is None else ast.literal_eval(value)) for name, by_name, value in found]


def merged(nodes: list[ast.FunctionDef]) -> list[tuple[str, bool, object]]:
    """What the overloads accept together. An overload without a parameter has it at its default, which is None."""
    each = [parameters_of(node) for node in nodes]
    longest = max(each, key=len)
    names = [name for name, _, _ in longest]
    assert all([name for name, _, _ in one] == names[: len(one)] for one in each), "overloads name parameters alike"
    found = []
    for i, (name, by_name, _) in enumerate(longest):
        defaults = {one[i][2] if i < len(one) else None for one in each} - {"none"}
        assert len(defaults) <= 1, f"overloads have one default for {name}"
        found.append((name, by_name, defaults.pop() if defaults else "none"))
    return found


def shown(call: Any) -> list[tuple[str, bool, object]]:
    listed = [each for each in inspect.signature(call).parameters.values() if each.name != "self"]
    listed = [each for each in listed if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    return [
        (each.name, each.kind is each.KEYWORD_ONLY, "none" if each.default is each.empty else each.default)
        for each in listed
    ]


@pytest.mark.parametrize("name", CALLS)
def test_a_public_call_has_the_signature_of_its_stub(name: str) -> None:
    call, owner = CALLS[name]
    if inspect.isfunction(call.__init__ if isinstance(call, type) else call):  # of Python: its source is its stub
        assert inspect.signature(call)
        return
    nodes = declared(name, call, owner)
    if not nodes:  # a named tuple makes its own, and a class without one takes nothing
        assert owner is not None
        assert hasattr(owner, "_fields") or shown(call) == []
        return
    assert shown(call) == merged(nodes)


@pytest.mark.parametrize("name", CALLS)
def test_a_public_call_has_help_without_its_signature_in_the_text(name: str) -> None:
    call, _owner = CALLS[name]
    text = inspect.getdoc(call)
    assert text
    assert "--" not in text.splitlines()[:2]


@pytest.mark.parametrize("name", MANAGERS)
def test_a_class_for_a_with_statement_shows_that_it_is_one(name: str) -> None:
    owner: Any = CLASSES[name]
    inspect.signature(owner.__enter__).bind(None)
    inspect.signature(owner.__exit__).bind(None, None, None, None)


def test_the_walk_finds_calls_of_every_class() -> None:
    assert {"BoundedQueue.put", "EventQueue.create", "Reader.get", "SlotQueue.lease", "TakenSlot.copy"} <= set(CALLS)
    assert {"open", "unlink", "queues", "Lease.release", "IndexQueue", "BoundedQueue.put_once"} <= set(CALLS)
    assert {"Workers.map", "multiprocessing.JoinableQueue.join", "queue.Queue.put", "torch.frames"} <= set(CALLS)
    assert {"BoundedQueue", "EventQueue", "Lease", "Watch", "Workers", "logging.QueueListener"} <= set(MANAGERS)


def test_create_without_an_item_type_makes_a_queue_of_bytes() -> None:
    with queueduct.BoundedQueue.create("plain", item=None) as q:
        assert q.item is bytes
        q.unlink()
