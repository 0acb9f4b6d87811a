"""The command ``queueduct``: one module for each group of subcommands, imported when one of them is asked for."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from pathlib import Path
from typing import Any

import click

from queueduct._version import __version__
from queueduct.cli.outcome import CLOSED_PIPE, Failure, Stopped, give_up_output, told, without_output
from queueduct.errors import Empty, Full, QueueductError, ShutDown

__all__ = ["ERROR_EXIT_CODE", "main"]

COMMANDS = {
    "aggregate": "queueduct.cli.pipelines",
    "archive": "queueduct.cli.pipelines",
    "bench": "queueduct.cli.machine.bench",
    "check": "queueduct.cli.check",
    "clear": "queueduct.cli.upkeep",
    "completion": "queueduct.cli.completion",
    "create": "queueduct.cli.create",
    "demo": "queueduct.cli.demo",
    "doctor": "queueduct.cli.machine.doctor",
    "get": "queueduct.cli.items.get",
    "hz": "queueduct.cli.live.hz",
    "keep-last": "queueduct.cli.upkeep",
    "ls": "queueduct.cli.queues",
    "put": "queueduct.cli.items.put",
    "queue-demo": "queueduct.cli.demo",
    "readers": "queueduct.cli.queues",
    "record": "queueduct.cli.recording",
    "repair": "queueduct.cli.upkeep",
    "replay": "queueduct.cli.recording",
    "rm": "queueduct.cli.upkeep",
    "shutdown": "queueduct.cli.upkeep",
    "stat": "queueduct.cli.queues",
    "stress": "queueduct.cli.stress",
    "tail": "queueduct.cli.items.tail",
    "top": "queueduct.cli.live.top",
    "web": "queueduct.cli.live.web",
}
SUMMARIES = {
    "aggregate": "Aggregate a queue over windows of time into another queue, by Spark.",
    "archive": "Write every item of a queue to Parquet files, by Spark.",
    "bench": "Measure a kind of queue beside multiprocessing.Queue.",
    "check": "Decide whether the history of a stress run is correct.",
    "clear": "Remove all items of a queue.",
    "completion": "Print what makes a shell complete commands and names.",
    "create": "Create a queue.",
    "demo": "The main job, live: producers, a queue, Spark, an archive.",
    "doctor": "Look whether this machine has what queues need.",
    "get": "Take items out of a queue, or run a command for each.",
    "hz": "Show the rate of a queue or a reader, line by line.",
    "keep-last": "Remove all but the last items of a log.",
    "ls": "List every queue.",
    "put": "Put items, files or what a pipe brings.",
    "queue-demo": "Four processes on one queue, one of them killed.",
    "readers": "List the readers of a log, or drop one.",
    "record": "Write every item to Parquet files, without Spark.",
    "repair": "Put right what killed processes have left.",
    "replay": "Put what was recorded into a queue.",
    "rm": "Remove queues' names.",
    "shutdown": "End a queue: nothing more is put.",
    "stat": "Show one queue.",
    "stress": "Run a queue under full load, and record every operation.",
    "tail": "Show the last items of a log, and follow it.",
    "top": "Show every queue, live.",
    "web": "Show every queue as a page in a browser.",
}
ERROR_EXIT_CODE = "queueduct.error_exit_code"
"""The key of ``Context.meta`` under which a subcommand says how it fails, if not with 1."""

EPILOG = """\b
Examples:
  queueduct create ticks events --item 'sym:S8, px:f8'   a log of records
  queueduct put ticks '{"sym": "ACME", "px": 101.5}'     one record
  queueduct tail ticks -n 10                             its last ten records
  queueduct create jobs bounded --capacity 1024          a queue of jobs
  queueduct put jobs resize-1.png resize-2.png           two jobs
  queueduct get jobs                                     one of them
  queueduct ls                                           every queue
  queueduct stat ticks --json                            one, for a script
  queueduct top                                          every queue, live
  queueduct record ticks --to rec --available-now        its items, to Parquet

\b
Exit codes:
  0    done; also by Ctrl-C, if it goes on until then
  1    failed; stderr says why, and what to do
  2    wrong usage; nothing was done
  3    time is up (--timeout)
  130  stopped by Ctrl-C; what is not done is still in its queue
  141  nobody reads the output any more, as after `| head`
"""

EXPECTED = (
    QueueductError,
    ShutDown,
    Empty,
    Full,
    ImportError,
    OSError,
    ValueError,
    TypeError,
    RuntimeError,
    MemoryError,
)


class Program(click.Group):
    """Imports subcommands late, and reports the errors of all of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(importlib.import_module(COMMANDS[cmd_name]), cmd_name.replace("-", "_"))
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes what each command does, without importing any of them: some need Spark's part of the package."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, SUMMARIES[name]) for name in COMMANDS])

    def make_context(self, *arguments: Any, **more: Any) -> click.Context:
        """Ends quietly if nobody reads the help."""
        try:
            return super().make_context(*arguments, **more)
        except BrokenPipeError:
            without_output()
            raise click.exceptions.Exit(CLOSED_PIPE) from None

    def invoke(self, ctx: click.Context) -> object:
        """Reports a bad name, file or option as one line on stderr, without a traceback."""
        if os.environ.get("NO_COLOR"):
            ctx.color = False
        try:
            result = super().invoke(ctx)
            if sys.stdout is not None:  # as it is after >&-
                sys.stdout.flush()
        except (click.exceptions.Exit, click.Abort, click.ClickException):
            raise
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # once more says nothing more
            raise Stopped("") from None
        except BrokenPipeError:
            without_output()
            ctx.exit(CLOSED_PIPE)
        except EXPECTED as error:
            give_up_output()
            raise Failure(told(error), ctx.meta.get(ERROR_EXIT_CODE, 1)) from error
        return result


@click.group(
    cls=Program, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120}
)
@click.version_option(__version__, prog_name="queueduct")
@click.option("--dir", "--directory", "directory", type=click.Path(path_type=Path), help="Where the queues are.")
def main(directory: Path | None) -> None:
    """Concurrent queues in shared memory.

    Queues live in $QUEUEDUCT_DIR, by default /dev/shm/queueduct-<uid>. Sizes are written as in 256M, times as in 500ms.
    What get and tail show as a table in a terminal is lines of JSON in a pipe; NO_COLOR turns colours off.
    """
