"""An archive and the checkpoint that fills it belong together, and must not be parted in silence.

Spark's file sink keeps a log of the batches it has, ``_spark_metadata/N``, and leaves out a batch that is in it. The
numbers are those of the checkpoint. With another checkpoint, say a new one that begins at batch 0, what the sink leaves
out are batches that it never had: they are gone, and the query knows nothing of it.

So an archive and its checkpoint name each other by a random id, in a file of each: ``_queueduct_archive`` here, where
readers of Parquet pass it over, and ``queueduct_archive`` there. The checkpoint's is written first. Killed between
the two, the next start finds the id in the checkpoint, and an archive that has none, at the path that the
checkpoint's file names: it goes on. Each file is made whole, by the first process that makes it: of two queries that
begin one archive at the same time, one is refused.

The numbers have the last word, with ids or without, since earlier versions wrote none and a directory can be copied.
A batch is planned, then written, then noted as done; so the archive's last batch is the last that is done, or the one
after it, if that is planned. Anything else is an archive that has batches which this checkpoint never wrote, or that
lacks some which it did. A checkpoint of which a part was removed may agree with its archive all the same, and Spark
would begin at batch 0 again, or leave one out; so its own numbers must agree, too, and the archive's must be whole.

The name of an archive must stay as well. Spark's log has whole paths: in a directory that was moved or copied, or is
named through a link, Spark does not see the files that were written under the other name, without an error.
"""

from __future__ import annotations

import contextlib
import json
import secrets
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from queueduct.spark.checkpoint import NONE, Checkpoint, HadoopDirectory, first_lacking, last_batch
from queueduct.spark.read.spool import beside

__all__ = ["NotThisArchive", "claim"]

METADATA = "_spark_metadata"
IN_LAKE, IN_CHECKPOINT = "_queueduct_archive", "queueduct_archive"


class NotThisArchive(ValueError):
    """The directory is another checkpoint's archive: Spark would leave out batches there, and lose them."""


def claim(spark: SparkSession, to: str | Path, checkpoint: str | Path) -> None:
    """Raises unless this checkpoint may fill this directory. Notes in both that it does."""
    lake, state = HadoopDirectory(spark, to), Checkpoint(spark, checkpoint)
    theirs, mine = mark_of(lake, IN_LAKE), mark_of(state.directory, IN_CHECKPOINT)
    written = last_batch(lake.names(METADATA))
    is_others = mine is not None and (theirs is None or mine["id"] != theirs["id"])
    refuse = Refusal(lake, state, written, is_others=is_others)
    if theirs is not None and (mine is None or mine["id"] != theirs["id"]):
        made_with = theirs["checkpoint"]
        which = "one that is no longer there" if made_with == state.directory.name else made_with
        raise refuse.because(f"its checkpoint is {which}")
    if state.planned not in (state.done, state.done + 1):
        plans = f"it has planned {told(state.planned)}, and has done {told(state.done)}"
        raise refuse.because(f"the checkpoint lacks files: {plans}")
    if (lacking := first_lacking(lake.names(METADATA))) is not None:
        raise refuse.because(f"its {METADATA} lacks batch {lacking}, so that Spark cannot read it")
    if written != state.done and not (written == state.done + 1 <= state.planned):
        raise refuse.because(f"it has {told(written)}, and the checkpoint has done {told(state.done)}")
    if theirs is not None and mine is not None:
        check_name(lake, mine["archive"])
        return
    if mine is not None and mine["archive"] != lake.name and state.planned != NONE:
        raise refuse.because(f"the checkpoint belongs to the archive {mine['archive']}")
    if state.planned == written == NONE and (others := data_in(lake)):
        raise refuse.because(f"it has files that no archive has written, {others[0]} among them, and would hide them")
    fresh = {"id": secrets.token_hex(16), "archive": lake.name}
    made = json.loads(state.directory.write_first(IN_CHECKPOINT, json.dumps(fresh)))
    noted = {"id": made["id"], "checkpoint": state.directory.name}
    if json.loads(lake.write_first(IN_LAKE, json.dumps(noted)))["id"] != made["id"]:
        raise refuse.because("another query has just begun it")


def mark_of(directory: HadoopDirectory, name: str) -> dict[str, Any] | None:
    text = directory.text(name)
    if text is None:
        return None
    with contextlib.suppress(ValueError):
        found = json.loads(text)
        if isinstance(found, dict) and "id" in found:
            return found
    raise NotThisArchive(
        f"{directory.name}/{name} must say which archive and which checkpoint belong together, and is damaged; if they "
        f"do, remove {IN_LAKE} in the archive and {IN_CHECKPOINT} in the checkpoint: their batches are compared again"
    )


def check_name(lake: HadoopDirectory, begun: str) -> None:
    """Spark's log has whole paths, and of what it lists Spark reads only the files below the path it is asked for."""
    if lake.name != begun:
        raise NotThisArchive(
            "an archive must have the name that it was begun with, or Spark does not see all of its files: "
            f"{lake.name} was begun as {begun}; name it so, after moving it back if it was moved, or archive into a "
            "new directory"
        )


def data_in(lake: HadoopDirectory) -> list[str]:
    """Returns the files that a reader of Parquet finds there."""
    return sorted(name for name in lake.names() if name[0] not in "._" and (name.endswith(".parquet") or "=" in name))


def told(batch: int) -> str:
    return "no batch" if batch == NONE else f"batches up to {batch}"


class Refusal:
    """The message: what is wrong, and what to do instead."""

    def __init__(self, lake: HadoopDirectory, state: Checkpoint, written: int, *, is_others: bool) -> None:
        """``is_others``: the checkpoint is that of another archive."""
        self.lake = lake.name
        self.checkpoint = state.directory.name
        self.is_others = is_others
        self.is_by_lake = not is_others and written != NONE
        self.position = state.position_after(written) if self.is_by_lake else state.position()
        spool = Path(beside(self.checkpoint)["spoolDir"])
        self.spool = spool if spool.is_dir() else None

    def going_on(self) -> str:
        """Returns the remedy that neither repeats nor loses an item."""
        same = "if the queue was not created anew since"
        if self.spool is not None:
            return (
                ""
                if self.is_others
                else f"; {same}, first move {self.spool} to {self.lake.rstrip('/')}-2/_checkpoint.spool, or beside the "
                "other --checkpoint: what the queue has given and Spark has not done is only there"
            )
        if self.position is not None:
            where = self.lake if self.is_by_lake else self.checkpoint
            return f"; with --start {self.position} that goes on where {where} is, {same}" if self.position else ""
        if not self.is_by_lake:
            return ""
        return f"; with --start and one more than the highest position in {self.lake} that goes on behind it, {same}"

    def because(self, why: str) -> NotThisArchive:
        on = self.going_on()
        return NotThisArchive(
            f"an archive takes only the checkpoint that it was begun with, or Spark leaves out batches in silence: "
            f"{self.lake} is not that of {self.checkpoint}: {why}; archive into a new directory, as in --to "
            f"{self.lake.rstrip('/')}-2 (with another --checkpoint, if you name one), and read both{on}"
        )
