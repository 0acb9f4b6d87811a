"""The subcommand ``create``: every option of every kind. What a kind takes, its own ``create`` says."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import click
import numpy as np

import queueduct
from queueduct.cli.options import IN, ITEM, as_json, complete_queues
from queueduct.cli.outcome import Failure
from queueduct.cli.output import echo_json
from queueduct.cli.units import AMOUNT, BYTES, SECONDS
from queueduct.formats.item_text import item_text
from queueduct.segments.kinds import KINDS

__all__ = ["create"]

SIZES = {  # of each kind: option of create -> its name in the header, where that is another one
    "bounded": {"capacity": "", "slot_bytes": "", "participants": "", "producers": ""},
    "growing": dict.fromkeys(("first_bytes", "steps", "slot_bytes", "max_bytes", "participants", "producers"), ""),
    "overwriting": {"capacity": "", "message_bytes": "", "participants": ""},
    "slots": {"capacity": "", "slot_bytes": "", "participants": "", "producers": ""},
    "events": {
        "max_bytes": "",
        "first_items": "",
        "item_bytes": "",
        "chunk_bytes": "block_bytes",
        "readers": "",
        "producers": "",
        "participants": "",
    },
}
OF_ITEMS = ("slot_bytes", "message_bytes", "item_bytes")  # which follow from the dtype of records


@click.command(
    epilog="\b\nExamples:\n"
    "  queueduct create ticks events --item 'sym:S8, px:f8, ts:M8[us]'\n"
    "  queueduct create jobs bounded --capacity 1k --slot-bytes 200\n"
    "  queueduct create frames slots --item '(480,640)f4' --capacity 8 --exist-ok\n"
    "  queueduct create more-ticks --like ticks --max-bytes 256M\n"
    "\n\b\n"
    "Kinds:\n"
    "  bounded      each item to one consumer; a full queue makes producers wait\n"
    "  growing      the same, with memory that grows and shrinks\n"
    "  overwriting  the newest item replaces the oldest\n"
    "  slots        frames of megabytes, filled and read in place\n"
    "  events       a log: every reader sees every item\n"
)
@click.argument("name", metavar="QUEUE")
@click.argument("kind", required=False, type=click.Choice(list(KINDS)))
@click.option("--like", metavar="OTHER", shell_complete=complete_queues, help="Kind, item and sizes of that queue.")
@click.option("--item", type=ITEM, help="bytes (default), object (pickled), f8, '(480,640)f4', or 'sym:S8, px:f8'.")
@click.option("--capacity", type=AMOUNT, help="How many items; of bounded, overwriting and slots.")
@click.option("--slot-bytes", type=BYTES, help="Bytes of a slot, where items vary; of bounded, growing and slots.")
@click.option("--message-bytes", type=BYTES, help="Bytes of a message; of overwriting.")
@click.option("--max-bytes", type=BYTES, help="The most memory; of growing and events.")
@click.option("--first-bytes", type=BYTES, help="Of the first sub-queue; of growing.")
@click.option("--steps", type=AMOUNT, help="How often it grows four times, and one more; of growing.")
@click.option("--first-items", type=AMOUNT, help="Items of the first two chunks; of events.")
@click.option("--item-bytes", type=BYTES, help="Bytes of a typical item, where items vary; of events.")
@click.option("--chunk-bytes", type=BYTES, help="The largest chunk; of events.")
@click.option(
    "--on-full", type=click.Choice(["wait", "raise", "drop_slowest"]), help="What a put does at --max-bytes; of events."
)
@click.option("--readers", type=AMOUNT, help="Lines for readers; of events.")
@click.option("--sync", type=click.Choice(["always", "interval", "never"]), help="When a disk is written; of events.")
@click.option("--sync-interval", type=SECONDS, help="How often, as in 500ms; of events.")
@click.option("--producers", type=AMOUNT, help="Names that put --producer may use; of all but overwriting.")
@click.option("--participants", type=AMOUNT, help="Threads of all processes that may use it at once.")
@click.option("--replace", is_flag=True, help="Give it the name of an existing queue, in one step.")
@click.option("--exist-ok", is_flag=True, help="It may exist, if it has the same kind, item and sizes.")
@IN
@as_json("Print the new queue as a JSON object.")
def create(
    name: str,
    kind: str | None,
    like: str | None,
    directory: Path | None,
    replace: bool,
    exist_ok: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Create a queue."""
    if replace and exist_ok:
        raise click.UsageError("--replace and --exist-ok exclude each other: give one of them")
    wanted = {option: value for option, value in given.items() if value is not None}
    chosen, options = resolved(name, kind, like, directory, wanted)
    try:
        made = KINDS[chosen].queue_class.create(
            name, directory=directory, replace=replace, exist_ok=exist_ok, **options
        )
    except queueduct.QueueExists as error:
        if exist_ok:  # it has another shape, and says which
            raise
        raise Failure(
            f"a queue named {name!r} exists: --exist-ok takes it if it has the same shape, --replace gives its name to "
            f"the new one, queueduct rm {name} removes the name"
        ) from error
    except (queueduct.QueueductError, OSError):
        raise
    except (ValueError, TypeError) as error:
        raise click.UsageError(str(error)) from error
    with made as queue:
        row = {"name": name, "kind": chosen, "item": item_text(queue.item), "directory": str(queue.directory)}
        if as_json:
            echo_json(row)
        else:
            click.echo(f"{name}: {chosen}, {row['item']}, in {row['directory']}")


def resolved(
    name: str, kind: str | None, like: str | None, directory: Path | None, wanted: dict[str, Any]
) -> tuple[str, dict[str, Any]]:
    """Returns the kind, and the options of its ``create``."""
    options: dict[str, Any] = {}
    if like is not None:
        chosen, options = options_of(like, directory, has_item="item" in wanted)
        if kind is not None and kind != chosen:
            raise click.UsageError(f"a queue like {like!r} is of its kind, {chosen}: kind={kind}; leave the kind out")
    elif kind is None:
        raise click.UsageError(f"a queue needs a kind: add one of {', '.join(KINDS)}, or --like another queue")
    else:
        chosen = kind
    taken = list(inspect.signature(KINDS[chosen].queue_class.create).parameters)
    foreign = [option for option in wanted if option not in taken]
    if foreign:
        own = ", ".join(flag(option) for option in taken if option not in ("name", "directory"))
        raise click.UsageError(f"a queue of kind {chosen} has no {flag(foreign[0])}: leave it out; it has {own}")
    return chosen, options | wanted


def flag(option: str) -> str:
    return f"--{option.replace('_', '-')}"


def options_of(name: str, directory: Path | None, *, has_item: bool) -> tuple[str, dict[str, Any]]:
    """Returns the kind of a queue, and the options with which ``create`` makes one of the same shape."""
    with queueduct.watch(name, directory=directory) as watch:
        kind, item, sizes = watch.kind, watch.item, watch.sizes
    found: dict[str, Any] = {option: sizes[field or option] for option, field in SIZES[kind].items()}
    if has_item or isinstance(item, np.dtype):
        found = {option: value for option, value in found.items() if option not in OF_ITEMS}
    if kind == "growing" and found["max_bytes"] == 0:
        del found["max_bytes"]
    if kind == "events":
        from queueduct.events.geometry import ON_FULL, SYNC

        found["on_full"] = {number: word for word, number in ON_FULL.items()}[sizes["on_full"]]
        found["sync"] = {number: word for word, number in SYNC.items()}[sizes["sync"]]
        found["sync_interval"] = sizes["sync_interval_ns"] / 1e9
    return kind, {**found, "item": item}
