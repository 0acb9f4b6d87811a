"""A Spark session that starts with one call, finds a Java, and prints nothing to the terminal."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from queueduct.spark.ending import whenever_it_ends
from queueduct.spark.java import find_java, write_shim

__all__ = ["session"]

LOGGING = """\
rootLogger.level = {level}
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{{HH:mm:ss}} %p %c{{1}}: %m%n%ex
# Spark announces a change of level, to stderr, unless its own packages are at the level of the root.
logger.spark.name = org.apache.spark
logger.spark.level = {level}
"""

# Where a cluster or a user has no defaults. What Spark reads of a column comes from our own workers, in batches that
# were checked when they were made: checking every single value again takes a third off the speed of a read.
DEFAULTS = """\
spark.driver.extraJavaOptions {arrow}
spark.executor.extraJavaOptions {arrow}
""".format(arrow="-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false")

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    "spark.python.unix.domain.socket.enabled": "true",  # two thirds off the shortest micro-batch
}

# Where checkpoints are on a disk of this host. Spark's usual choice starts several processes for each file that it
# writes there (chmod, readlink). Both write a file under another name and rename it.
LOCAL_CHECKPOINTS = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    )
}

QUIET_WORKERS = {"spark.python.daemon.module": "pyspark_queueduct.daemon"}


def session(
    master: str = "local[*]", *, name: str = "queueduct", log_level: str = "off", **options: str
) -> SparkSession:
    """The running session, or a new one that is quiet and knows the source and the sink "queueduct".

    Options are Spark's own settings, with ``__`` for each dot: ``spark__sql__shuffle__partitions="8"``.
    """
    if SparkSession.getActiveSession() is None:
        prepare_environment(log_level)
    given = {option.replace("__", "."): str(value) for option, value in options.items()}
    local = LOCAL_CHECKPOINTS if master.startswith("local") else {}
    settings = SETTINGS | local | (QUIET_WORKERS if workers_are_ours(master, given) else {}) | given
    builder = SparkSession.builder.master(master).appName(name)
    for setting, value in settings.items():
        builder = builder.config(setting, value)
    return builder.getOrCreate()


def workers_are_ours(master: str, given: dict[str, str]) -> bool:
    """Returns true if the workers run here, beside this terminal, and with this Python."""
    python = given.get("spark.pyspark.python", os.environ.get("PYSPARK_PYTHON"))
    return master.startswith("local") and python == sys.executable


def prepare_environment(log_level: str) -> None:
    """Sets what Spark reads before any setting. Keeps what the user has set, but wraps JAVA_HOME."""
    folder = Path(tempfile.mkdtemp(prefix="queueduct-spark-"))
    whenever_it_ends(lambda: shutil.rmtree(folder, ignore_errors=True))
    write_shim(folder / "java", find_java())
    os.environ["JAVA_HOME"] = str(folder / "java")
    (folder / "log4j2.properties").write_text(LOGGING.format(level=log_level))
    (folder / "spark-defaults.conf").write_text(DEFAULTS)
    os.environ.setdefault("SPARK_CONF_DIR", str(folder))
    # what it would print is in the exceptions too
    PySparkLogger.getLogger("DataFrameQueryContextLogger").setLevel("CRITICAL")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # or workers take any python3 that is on the PATH
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
