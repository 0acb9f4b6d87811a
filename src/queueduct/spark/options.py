"""The options of source and sink: read, checked, and refused with the rule, the value and the remedy."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Literal, TypeVar, cast

__all__ = ["SinkOptions", "SourceOptions", "Start", "option_names"]

Value = TypeVar("Value", int, float)
Start = Literal["earliest", "latest"] | int


@dataclass(frozen=True)
class SourceOptions:
    """The options of ``spark.read`` and ``spark.readStream``."""

    queue: str
    directory: str | None
    strings: str
    position_column: str
    starting_offsets: Start | None
    start_position: int | None
    end_position: int | None
    max_rows_per_trigger: int | None
    max_bytes_per_trigger: int | None
    partitions: int | None
    reader: str | None
    fail_on_data_loss: bool
    spool_dir: str | None
    spool_max_bytes: int | None
    checkpoint_location: str | None

    @classmethod
    def of(cls, given: Mapping[str, str]) -> SourceOptions:
        values = OptionParser(given, cls)
        return cls(
            queue=values.queue(),
            directory=values.get("directory"),
            strings=values.one_of("strings", "string", "binary"),
            position_column=values.get("positionColumn") or "position",
            starting_offsets=values.starting(),
            start_position=values.number("startPosition", least=0),
            end_position=values.number("endPosition", least=0),
            max_rows_per_trigger=values.number("maxRowsPerTrigger", least=1),
            max_bytes_per_trigger=values.number("maxBytesPerTrigger", least=1),
            partitions=values.number("partitions", least=1),
            reader=values.get("reader"),
            fail_on_data_loss=values.one_of("failOnDataLoss", "true", "false") == "true",
            spool_dir=values.get("spoolDir"),
            spool_max_bytes=values.number("spoolMaxBytes", least=1 << 16),
            checkpoint_location=values.get("checkpointLocation"),
        )


@dataclass(frozen=True)
class SinkOptions:
    """The options of ``df.write`` and ``df.writeStream``."""

    queue: str
    directory: str | None
    position_column: str
    timeout: float | None
    staging_dir: str | None
    producer: str | None
    sequence: int

    @classmethod
    def of(cls, given: Mapping[str, str]) -> SinkOptions:
        values = OptionParser(given, cls)
        sequence = values.number("sequence", least=0)
        if sequence is not None and values.get("producer") is None:
            raise ValueError(f"sequence numbers the writes of a producer: sequence={sequence}; give producer too")
        if sequence is None and values.get("producer") is not None:
            raise ValueError(
                f"a producer's writes are known by their numbers, and a second one without would be left out: "
                f"producer={values.get('producer')!r}; give sequence too, a higher one for each new write"
            )
        return cls(
            queue=values.queue(),
            directory=values.get("directory"),
            position_column=values.get("positionColumn") or "position",
            timeout=values.converted("timeout", float, 0.0, "a number of seconds"),
            staging_dir=values.get("stagingDir"),
            producer=values.get("producer"),
            sequence=sequence or 0,
        )


def option_names(options: type[SourceOptions | SinkOptions]) -> list[str]:
    """Returns the names as Spark writes them: ``spool_dir`` is the option spoolDir."""
    words = (each.name.split("_") for each in fields(options))
    return [first + "".join(map(str.capitalize, rest)) for first, *rest in words]


class OptionParser:
    """Options as Spark hands them over: text, in any case of letters."""

    def __init__(self, given: Mapping[str, str], options: type[SourceOptions | SinkOptions]) -> None:
        self.values = {name.lower(): value for name, value in given.items()}
        known = {name.lower(): name for name in option_names(options)}
        for name in self.values:  # Spark adds options of its own, so only likely typing errors are refused
            close = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
            if name not in known and close:
                raise ValueError(f"there is no such option: {name!r}; did you mean {known[close[0]]}?")

    def get(self, name: str) -> str | None:
        return self.values.get(name.lower())

    def queue(self) -> str:
        name = self.get("queue") or self.get("path")
        if not name:
            raise ValueError("a queue must be named: queue is missing; add .option('queue', 'its name')")
        return name

    def number(self, name: str, least: int) -> int | None:
        return self.converted(name, int, least, "a whole number")

    def converted(self, name: str, convert: Callable[[str], Value], least: Value, what: str) -> Value | None:
        text = self.get(name)
        if text is None:
            return None
        try:
            value = convert(text)
        except ValueError:
            raise ValueError(f"{name} must be {what}: {name}={text!r}") from None
        if not value >= least:  # not <: that would let NaN pass
            raise ValueError(f"{name} must be {what} of at least {least}: {name}={text!r}")
        return value

    def one_of(self, name: str, default: str, *others: str) -> str:
        value = (self.get(name) or default).lower()
        if value not in (default, *others):
            raise ValueError(f"{name} must be {' or '.join((default, *others))}: {name}={value!r}")
        return value

    def starting(self) -> Start | None:
        text = self.get("startingOffsets")
        if text is None or text in ("earliest", "latest"):
            return cast(Start | None, text)
        if not text.isdecimal():
            raise ValueError(f"startingOffsets must be earliest, latest or a position: startingOffsets={text!r}")
        return int(text)
