"""Typed signatures of public calls, as the stubs and the source files write them, and the texts below fields."""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[2] / "src"
CALL = (ast.FunctionDef, ast.AsyncFunctionDef)
Definition = ast.FunctionDef | ast.AsyncFunctionDef
SHORTER = {
    r"\b_(T|T_co|Item|Default|Arguments?|Result)\b": r"\1",
    r"\bT_co\b": "T",
    r"\bNDArray\[Any\]": "NDArray",
    r"\bDirectory\b": "str | PathLike | None",
}


@dataclass(frozen=True)
class Field:
    """A field of a row: its name, its type, what is written below it."""

    name: str
    type: str
    text: str


class Module:
    """A source file, or its stub where it has one."""

    def __init__(self, name: str) -> None:
        path = SOURCE.joinpath(*name.split("."))
        files = [path.with_suffix(".pyi"), path / "__init__.py", path.with_suffix(".py")]
        text = next((each.read_text() for each in files if each.exists()), "")  # a private base may have no stub
        self.body = ast.parse(text).body

    def named(self, name: str) -> list[ast.stmt]:
        """Return the definitions of a function or class, the overloads of a function included."""
        found: list[ast.stmt] = self.body
        for part in name.split("."):
            inside = [each for each in found if isinstance(each, (*CALL, ast.ClassDef)) and each.name == part]
            found = [*inside[0].body] if len(inside) == 1 and isinstance(inside[0], ast.ClassDef) else [*inside]
        return found


@functools.cache
def module(name: str) -> Module:
    return Module(name)


def signatures(owner: type | None, name: str, thing: Any) -> list[str]:
    """Return each form of a call, as in ``(item: bytes) -> None``."""
    nodes = list(calls(owner, name, thing))
    if not nodes:
        return [str(inspect.signature(thing))]
    if len({ast.unparse(node.returns) for node in nodes if node.returns}) == 1 and any(map(of_some_items, nodes)):
        nodes = nodes[-1:]  # the others only say what a put takes besides, for records and for bytes
    if any(decorated(node, "classmethod") for node in nodes):
        nodes = [joined(nodes)]  # which form is meant depends on one argument, and shows in the type of the queue
    forms = [signature(node, of_class=owner is not None) for node in nodes]
    return list(dict.fromkeys(forms))


def joined(nodes: list[Definition]) -> Definition:
    """Return one definition for overloads with the same parameters: each parameter takes what one of them takes."""
    whole = copy.deepcopy(nodes[-1])
    lists = [[*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs] for node in (whole, *nodes)]
    for parameter, *others in zip(*lists, strict=True):
        types = [part for each in others if each.annotation for part in ast.unparse(each.annotation).split(" | ")]
        if types:
            ordered = sorted(dict.fromkeys(types), key=lambda each: each == "None")
            parameter.annotation = ast.parse(" | ".join(ordered), mode="eval").body
    whole.args.kw_defaults = [
        next((default for default in defaults if default is not None), None)
        for defaults in zip(*(node.args.kw_defaults for node in nodes), strict=True)
    ]
    return whole


def of_some_items(node: Definition) -> bool:
    """Return True for an overload that is for queues of one type of item."""
    first = [*node.args.posonlyargs, *node.args.args][:1]
    return bool(first) and first[0].annotation is not None


def written(module_name: str, name: str) -> list[tuple[str, str]]:
    """Return signature and docstring of a function as they are in its source."""
    nodes = [each for each in module(module_name).named(name) if isinstance(each, CALL)]
    return [(signature(node, of_class=False), ast.get_docstring(node) or "") for node in nodes]


def constructor(thing: type) -> str:
    """Return the parameters by which a class is called; an empty text if it is made by its own calls only."""
    nodes = list(calls(thing, "__init__", None))
    return signature(nodes[0], of_class=True) if nodes else ""


def type_of(owner: type, name: str) -> str:
    """Return the type of a property, or an empty text."""
    for node in calls(owner, name, None):
        if node.returns is not None:
            return shorter(ast.unparse(node.returns))
    return ""


def is_class_method(owner: type, name: str) -> bool:
    return any(decorated(node, "classmethod") for node in calls(owner, name, None))


def decorated(node: Definition, name: str) -> bool:
    return any(isinstance(each, ast.Name) and each.id == name for each in node.decorator_list)


def calls(owner: type | None, name: str, thing: Any) -> Iterator[Definition]:
    """Yield the definitions of a function, or of a method in the first base that has it."""
    places = [(thing.__module__, thing.__qualname__)] if owner is None else []
    if owner is not None:
        places = [(base.__module__, f"{base.__qualname__}.{name}") for base in owner.__mro__]
    for where, path in places:
        if where.startswith("queueduct"):
            nodes = [each for each in module(where).named(path) if isinstance(each, CALL)]
            if nodes:
                yield from nodes
                return


def signature(node: Definition, *, of_class: bool) -> str:
    """Return the parameters and the result of a definition, without self."""
    arguments = copy.deepcopy(node.args)
    if of_class and not decorated(node, "staticmethod"):
        (arguments.posonlyargs or arguments.args).pop(0)
    result = "" if node.returns is None or node.name == "__init__" else f" -> {ast.unparse(node.returns)}"
    return shorter(f"({ast.unparse(arguments)}){result}")


def fields(row: type) -> list[Field]:
    """Return the fields of a named tuple, with the texts that stand below them in its source."""
    body = module(row.__module__).named(row.__qualname__)
    found = []
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            said = after.value if isinstance(after, ast.Expr) else None
            text = said.value if isinstance(said, ast.Constant) and isinstance(said.value, str) else ""
            found.append(Field(node.target.id, shorter(ast.unparse(node.annotation)), text))
    return found


def shorter(text: str) -> str:
    for pattern, replacement in SHORTER.items():
        text = re.sub(pattern, replacement, text)
    return text
