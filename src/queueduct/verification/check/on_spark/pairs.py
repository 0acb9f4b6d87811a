"""The put and the get of every value, side by side."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from queueduct.verification.check.counts import Counts
from queueduct.verification.check.operations import (
    GET,
    KILLED_GET,
    KILLED_PUT,
    NEVER,
    PUT,
    REDELIVERED,
    Finding,
    sought,
)
from queueduct.verification.check.witnesses import not_unique
from queueduct.verification.history.format import History

__all__ = ["bad_pairs", "pairs_of", "with_unseen_gets"]

LISTED = 100


def pairs_of(rows: DataFrame, history: History, counts: Counts, partitions: int) -> DataFrame:
    """One row a value; in a log one for each reader. Times that never came are NEVER."""
    code = fn.col("code")
    reader = fn.coalesce("reader", fn.lit(-1))
    if history.kind == "events":
        everybody = fn.array(*[fn.lit(each) for each in counts.readers] or [fn.lit(-1)])
        reader = fn.explode(fn.when(fn.col("op") == "put", everybody).otherwise(fn.array(fn.col("reader"))))
    sides = rows.filter(fn.col("value").isNotNull() & code.isin(PUT, GET, KILLED_PUT, KILLED_GET, REDELIVERED))
    sides = sides.select(reader.alias("reader"), "value", "code", "redelivered", "invoke_ns", "return_ns")
    is_put, is_got = code.isin(PUT, KILLED_PUT), code.isin(GET, REDELIVERED)

    def soonest(condition: Column, column: str) -> Column:
        return fn.min(fn.when(condition, fn.col(column)))

    return (
        sides.repartition(partitions, "reader", "value")
        .groupBy("reader", "value")
        .agg(
            fn.count(fn.when(is_put, 1)).cast("int").alias("puts"),
            fn.count(fn.when(code == KILLED_PUT, 1)).cast("int").alias("killed_puts"),
            fn.count(fn.when(is_got, 1)).cast("int").alias("gets"),
            fn.count(fn.when(code == KILLED_GET, 1)).cast("int").alias("killed_gets"),
            fn.count(fn.when(fn.col("redelivered") & (fn.col("code") != PUT), 1)).cast("int").alias("again"),
            soonest(is_put, "invoke_ns").alias("ie"),
            fn.coalesce(soonest(code == PUT, "return_ns"), fn.lit(NEVER)).alias("re"),
            fn.coalesce(soonest(is_got, "invoke_ns"), soonest(code == KILLED_GET, "invoke_ns"), fn.lit(NEVER)).alias(
                "id"
            ),
            fn.coalesce(soonest(is_got, "return_ns"), fn.lit(NEVER)).alias("rd"),
            fn.max(fn.when(is_got, fn.col("invoke_ns"))).alias("last_id"),
        )
    )


def bad_pairs(pairs: DataFrame) -> list[Finding]:
    """What a value alone shows: got and never put, got before it was put, got twice."""
    never_put = (fn.col("puts") == 0) & (fn.col("gets") > 0)
    too_soon = (fn.col("puts") > 0) & (fn.col("rd") < fn.col("ie"))
    twice = fn.col("gets") > 1
    counted = pairs.agg(
        fn.count(fn.when(fn.col("puts") > 1, 1)).alias("doubled"),
        fn.count(fn.when(never_put, 1)).alias("never_put"),
        fn.count(fn.when(too_soon, 1)).alias("too_soon"),
        fn.count(fn.when(twice, 1)).alias("twice"),
        fn.min(fn.when(fn.col("puts") > 1, fn.col("value"))).alias("doubled_value"),
    ).collect()[0]
    if counted["doubled"]:
        raise not_unique(counted["doubled_value"], [])
    found: list[Finding] = []
    for condition, name, rule, why in (
        (never_put, "never_put", "fresh", "an item was got that was never put"),
        (too_soon, "too_soon", "fresh", "an item was got before its put was invoked"),
        (twice, "twice", "repeat", "an item was got twice"),
    ):
        if counted[name]:
            listed = pairs.filter(condition).orderBy("id").limit(LISTED).collect()
            for row in listed:
                which, time = ("return_ns", row["rd"]) if name == "too_soon" else ("invoke_ns", row["id"])
                got = sought("get", which, time, reader=row["reader"]) | {"value": row["value"]}
                other = {"op": "put", "value": row["value"]} if name == "too_soon" else None
                if name == "twice":
                    got, other = dict(got, invoke_ns=row["last_id"]), got
                found.append(Finding(rule, why, got, other))
            if counted[name] > len(listed):
                found.append(Finding(rule, why, {}, None, counted[name] - len(listed)))
    return found


def with_unseen_gets(pairs: DataFrame, rows: DataFrame, history: History, counts: Counts) -> DataFrame:
    """The pairs that the order is about.

    Redelivered items leave it. A killed put whose item nobody got may never have happened. What an overwriting queue
    did not deliver was overwritten. A reader need not see what was put before it subscribed.
    A killed get may have taken an item that nobody has seen since: the first such get the item that was put first.
    """
    is_left = (fn.col("gets") == 0) & (fn.col("killed_gets") == 0)
    kept = pairs.filter((fn.col("puts") == 1) & (fn.col("again") == 0) & ~(is_left & (fn.col("killed_puts") > 0)))
    if history.kind == "overwriting":
        return kept.filter(~is_left)
    if history.kind == "events":
        of_items = pairs.filter(~is_left).groupBy("reader").agg(fn.min("re").alias("start"))
        answers = rows.filter((fn.col("op") == "get") & fn.col("return_ns").isNotNull())
        of_answers = answers.groupBy("reader").agg(fn.min("return_ns").alias("start"))
        starts = of_items.unionByName(of_answers).groupBy("reader").agg(fn.min("start").alias("start"))
        known = kept.join(fn.broadcast(starts), "reader", "left")
        kept = known.filter(~is_left | (fn.col("ie") > fn.coalesce("start", fn.lit(NEVER)))).drop("start")
    if not counts.killed_with_nothing:
        return kept
    killed = rows.filter((fn.col("code") == KILLED_GET) & fn.col("value").isNull())
    killed = killed.select(fn.coalesce("reader", fn.lit(-1)).alias("reader"), "invoke_ns")
    invokes: dict[int, list[int]] = {}
    for row in killed.orderBy("invoke_ns").collect():
        invokes.setdefault(row["reader"], []).append(row["invoke_ns"])
    taken = []
    for reader, times in invokes.items():
        left = kept.filter(is_left & (fn.col("reader") == reader)).orderBy("re", "value").limit(len(times)).collect()
        taken += [(reader, row["value"], time) for row, time in zip(left, times, strict=False)]
    if not taken:
        return kept
    unseen = pairs.sparkSession.createDataFrame(taken, "reader long, value long, unseen long")
    joined = kept.join(fn.broadcast(unseen), ["reader", "value"], "left")
    return joined.withColumn("id", fn.coalesce("unseen", "id")).drop("unseen")
