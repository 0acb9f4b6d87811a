"""Writes the reference of the API: one page a class, from docstrings, stubs and the sources' own texts."""

from __future__ import annotations

import importlib
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any

from docs.site.signatures import constructor, fields, is_class_method, signatures, type_of, written
from docs.site.stage import Stage

FOLDER = "reference/api"
QUEUES = ("BoundedQueue", "GrowingQueue", "OverwritingQueue", "SlotQueue", "EventQueue")
CLASSES = (*QUEUES, "IndexQueue", "Reader", "Lease", "LoanedSlot", "TakenSlot", "Watch", "Workers", "DeadLetter")
FUNCTIONS = ("open", "queues", "unlink", "watch", "get_include", "get_cmake_dir", "get_pkgconfig_dir")
OTHERS = {  # a page a module: what it is called in the list
    "queueduct.multiprocessing": "drop-ins between processes",
    "queueduct.queue": "drop-ins between threads",
    "queueduct.arrow": "columns",
    "queueduct.logging": "logging from many processes",
    "queueduct.torch": "frames for PyTorch",
    "queueduct.monitoring": "rates, lag and status of many queues",
    "queueduct.recording": "Parquet files, and back",
}
ASYNC = ("aput", "aput_many", "aget", "aget_many", "alease", "aview", "alatest", "aloan", "atake")
GROUPS = {
    "Create and open": ("create", "open", "adopt"),
    "Put": ("put", "put_nowait", "try_put", "put_many", "put_arrow", "put_once", "loan", "push", "submit", "map"),
    "Get": (
        *("get", "get_nowait", "try_get", "get_many", "lease", "take", "pop", "pop_if_full", "pop_if_size_at_least"),
        *("view", "to_arrow", "commit", "subscribe", "read", "read_arrow", "peek", "latest", "readings"),
        *("publish", "cancel", "copy", "release", "give_back"),
    ),
    "asyncio": ASYNC,
    "Look": (
        *("qsize", "empty", "full", "stats", "participants", "producers", "readers", "unreleased", "progress"),
        *("valid_until", "durable_end", "is_held"),
    ),
    "Keep in order": ("forget_producer", "unsubscribe", "set_capacity", "clear", "keep_last", "sync"),
    "End": ("join", "task_done", "shutdown", "close", "unlink"),
}


def write(stage: Stage) -> None:
    """Write the list of what there is, and a page for each class and module."""
    import queueduct

    for name in CLASSES:
        stage.write(f"{FOLDER}/{name}.rst", page(name, of_class(f"queueduct.{name}", getattr(queueduct, name))))
    rows = sorted(name for name in queueduct.__all__ if is_row(getattr(queueduct, name)) and name not in CLASSES)
    about = [of_class(f"queueduct.{name}", getattr(queueduct, name)) for name in rows]
    stage.write(f"{FOLDER}/rows.rst", page("What calls return", inspect.getdoc(queueduct.stats) or "", *about))
    about = [of_function(f"queueduct.{name}", getattr(queueduct, name)) for name in FUNCTIONS]
    stage.write(f"{FOLDER}/functions.rst", page("Functions", *about))
    stage.write(f"{FOLDER}/errors.rst", errors(queueduct.errors))
    for name in OTHERS:
        stage.write(f"{FOLDER}/{name}.rst", of_module(name))
    stage.write(f"{FOLDER}/queueduct.spark.rst", page("queueduct.spark", spark_session()))
    stage.write(f"{FOLDER}/index.rst", index(queueduct))
    check_all_is_there(queueduct, rows)


def check_all_is_there(queueduct: Any, rows: list[str]) -> None:
    errors = {name for name in queueduct.__all__ if is_error(getattr(queueduct, name))}
    missing = set(queueduct.__all__) - {*CLASSES, *FUNCTIONS, *rows, *errors, "__version__"}
    if missing:
        raise ValueError(f"every public name has a place in the reference: {sorted(missing)}; see docs/site/api.py")


def is_row(thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, tuple) and hasattr(thing, "_fields")


def is_error(thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, BaseException)


def heading(text: str, line: str = "=") -> str:
    return f"{text}\n{line * len(text)}"


def page(title: str, *parts: str) -> str:
    return "\n\n".join((heading(title), *(part for part in parts if part))) + "\n"


def index(queueduct: Any) -> str:
    """Return the page with one line for each thing."""
    about = {name: first_sentence(getattr(queueduct, name)) for name in CLASSES}
    lines = [f":doc:`{name}`\n    {text}" for name, text in about.items()]
    lines += [f":doc:`{name}`\n    {text[0].upper()}{text[1:]}." for name, text in OTHERS.items()]
    lines.insert(len(CLASSES), ":doc:`functions`\n    " + ", ".join(f"``{name}``" for name in FUNCTIONS) + ".")
    lines.insert(
        len(CLASSES) + 1, ":doc:`rows`\n    The named tuples that ``stats()``, ``participants()`` and others return."
    )
    lines.insert(
        len(CLASSES) + 2, ":doc:`errors`\n    What can go wrong, one class for each decision that a caller can make."
    )
    lines.append(":doc:`queueduct.spark`\n    Sessions; :doc:`/spark` has the options of source and sink.")
    contents = [*CLASSES, "functions", "rows", "errors", *OTHERS, "queueduct.spark"]
    toctree = ".. toctree::\n   :hidden:\n\n" + "\n".join(f"   {name}" for name in contents)
    said = "Signatures are those of the type stubs, texts and examples those of ``help()``; the tests run the examples."
    return page("API", said, *lines, toctree)


def first_sentence(thing: Any) -> str:
    text = (inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ")
    return text.split(". ")[0].rstrip(".") + "."


def of_module(name: str) -> str:
    found = importlib.import_module(name)
    parts = [inspect.getdoc(found) or ""]
    for each in found.__all__:
        thing = getattr(found, each)
        if str(getattr(thing, "__module__", "")).startswith("queueduct") and not is_error(thing):
            describe = of_class if isinstance(thing, type) else of_function
            if callable(thing):
                parts.append(describe(f"{name}.{each}", thing))
    return page(name, *parts)


def spark_session() -> str:
    """Return the one call of queueduct.spark, from its source: an import would need Spark."""
    parts = [
        block(f".. py:function:: queueduct.spark.session{form}", text)
        for form, text in written("queueduct.spark.sessions", "session")
    ]
    return "\n\n".join(parts)


def errors(module: Any) -> str:
    parts = [inspect.getdoc(module) or ""]
    for name in module.__all__:
        thing = getattr(module, name)
        if thing.__module__ == "queueduct.errors":
            members = [member for group in members_of(thing).values() for member in group]
            parts.append(block(f".. py:exception:: queueduct.{name}", inspect.getdoc(thing) or "", *members))
    return page("Errors", *parts)


def of_function(name: str, thing: Any) -> str:
    forms = signatures(None, name, thing)
    return block(listed("py:function", name, forms), inspect.getdoc(thing) or "")


def listed(directive: str, name: str, forms: list[str]) -> str:
    """Return the first lines of a directive: a call's forms, one below the other."""
    start = f".. {directive}:: "
    return start + f"\n{' ' * len(start)}".join(f"{name}{form}" for form in forms)


def block(directive: str, *parts: str) -> str:
    """Return a directive with its content below it."""
    content = "\n\n".join(textwrap.indent(part, "   ") for part in parts if part)
    return f"{directive}\n\n{content}" if content else directive


def of_class(name: str, thing: type) -> str:
    """Return a class: how it is made, what its docstring says, its members by what they are for."""
    parts = [inspect.getdoc(thing) or ""]
    if is_row(thing):
        parts += [
            block(f".. py:attribute:: {each.name}\n   :type: {each.type}\n   :no-index:", each.text)
            for each in fields(thing)
        ]
        made = ""
    else:
        made = constructor(thing)
    groups = members_of(thing)
    for group, members in groups.items():
        parts += [f".. rubric:: {group}"] if len(groups) > 1 else []
        parts += members
    return block(f".. py:class:: {name}{made}", *parts)


def members_of(thing: type) -> dict[str, list[str]]:
    """Return the public members of a class, those of its bases included, by group."""
    found = dict(members(thing))
    groups: dict[str, list[str]] = {"Properties": []}
    groups |= {group: [found.pop(name) for name in names if name in found] for group, names in GROUPS.items()}
    for text in found.values():
        groups.setdefault("Properties" if text.startswith(".. py:property") else "More", []).append(text)
    return {group: texts for group, texts in groups.items() if texts}


def members(thing: type) -> Iterator[tuple[str, str]]:
    seen = set()
    for base in thing.__mro__:
        if not base.__module__.startswith("queueduct") or is_row(base):
            continue
        for name, value in vars(base).items():
            if name in seen or name.startswith("_") or isinstance(value, (int, str, float, type(None))):
                continue
            seen.add(name)
            yield name, member(thing, name, value)


def member(owner: type, name: str, value: Any) -> str:
    found = getattr(owner, name)
    if inspect.isdatadescriptor(value):
        typed = f"\n   :type: {type_of(owner, name)}" if type_of(owner, name) else ""
        return block(f".. py:property:: {name}{typed}", inspect.getdoc(value) or "")
    option = "\n   :classmethod:" if is_class_method(owner, name) else ""
    return block(listed("py:method", name, signatures(owner, name, found)) + option, inspect.getdoc(found) or "")
