"""The size of a world: a frozen dataclass whose fields are also the options of the command line."""

from __future__ import annotations

from argparse import _ArgumentGroup
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from shlex import quote
from typing import Any, ClassVar


def option(default: Any, help: str, *, least: int | None = None, metavar: str = "N") -> Any:
    """A field of a configuration.

    `least` is the smallest value that it may have; of a tuple, that each element may have.
    """
    return field(default=default, metadata={"help": help, "least": least, "metavar": metavar})


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """What every model has: how many participants may be killed, and which variant of the algorithm runs."""

    VARIANTS: ClassVar[Mapping[str, object]]
    """The algorithm first. Every other variant breaks one rule. An empty name stands for the algorithm."""

    kills: int = option(0, "how many participants may be killed", least=0)
    variant: str = option("", "which algorithm runs", metavar="NAME")

    def __post_init__(self) -> None:
        if not self.variant:
            object.__setattr__(self, "variant", self.algorithm())
        if self.variant not in self.VARIANTS:
            raise ValueError(f"no such variant: {self.variant!r}; try {', '.join(self.VARIANTS)}")
        for each in fields(self):
            value, least = getattr(self, each.name), each.metadata["least"]
            if least is not None and min(value if isinstance(value, tuple) else (value,), default=least) < least:
                raise ValueError(f"{each.name} must be at least {least}: {each.name}={value}")

    @classmethod
    def algorithm(cls) -> str:
        """The variant that breaks no rule."""
        return next(iter(cls.VARIANTS))

    @property
    def is_sound(self) -> bool:
        """Whether the variant must be clean; every other one must be caught."""
        return self.variant == self.algorithm()

    def __str__(self) -> str:
        """The options of the command line that make this configuration."""
        given = (_given(each, getattr(self, each.name)) for each in sorted(fields(self), key=_is_common))
        return " ".join(("--variant " + self.variant, *filter(None, given)))


def _is_common(each: Field[Any]) -> bool:
    return each.name in Configuration.__dataclass_fields__


def _given(each: Field[Any], value: Any) -> str:
    if each.name == "variant" or value == each.default:
        return ""
    return _flag(each) if value is True else f"{_flag(each)} {quote(_text(value))}"


def _flag(each: Field[Any]) -> str:
    return "--" + each.name.removeprefix("is_").replace("_", "-")


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def add_options(group: _ArgumentGroup, configuration: type[Configuration]) -> None:
    """One option for each field. What is not given is left out, so that the defaults of the fields hold."""
    for each in sorted(fields(configuration), key=_is_common):
        assert each.default is not MISSING
        help, metavar = each.metadata["help"], each.metadata["metavar"]
        if each.name == "variant":
            names = tuple(configuration.VARIANTS)
            help = f"{help} ({names[0]}): {', '.join(names)}"
            group.add_argument("--variant", choices=names, metavar=metavar, help=help)
        elif isinstance(each.default, bool):
            group.add_argument(_flag(each), action="store_true", dest=each.name, help=help)
        else:
            parsed, metavar = _parser_of(each, metavar)
            help = f"{help} ({_text(each.default) or 'none'})"
            group.add_argument(_flag(each), type=parsed, dest=each.name, metavar=metavar, help=help)


def _parser_of(each: Field[Any], metavar: str) -> tuple[Callable[[str], Any], str]:
    """The annotation says what a value is; annotations are text here."""
    if each.type in ("int", "str"):
        return (int if each.type == "int" else str), metavar
    part: Callable[[str], Any] = {"tuple[int, ...]": int, "tuple[str, ...]": str}[str(each.type)]

    def several(text: str) -> tuple[Any, ...]:
        return tuple(map(part, _words(text)))

    return several, f"{metavar},…"


def _words(text: str) -> Iterable[str]:
    return text.split(",") if text else ()
