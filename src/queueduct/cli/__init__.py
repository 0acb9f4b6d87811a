"""The command ``queueduct``: one module for each group of subcommands, imported when one of them is asked for."""

from __future__ import annotations

import importlib

import click

from queueduct._version import __version__
from queueduct.errors import QueueductError

__all__ = ["ERROR_EXIT_CODE", "main"]

COMMANDS = {
    "aggregate": "queueduct.cli.pipelines",
    "archive": "queueduct.cli.pipelines",
    "check": "queueduct.cli.check",
    "demo": "queueduct.cli.demo",
    "hz": "queueduct.cli.hz",
    "ls": "queueduct.cli.queues",
    "queue-demo": "queueduct.cli.demo",
    "record": "queueduct.cli.recording",
    "replay": "queueduct.cli.recording",
    "rm": "queueduct.cli.queues",
    "stat": "queueduct.cli.queues",
    "stress": "queueduct.cli.stress",
    "top": "queueduct.cli.top",
    "web": "queueduct.cli.web",
}
ERROR_EXIT_CODE = "queueduct.error_exit_code"
"""The key of ``Context.meta`` under which a subcommand says how it fails, if not with 1."""

EXAMPLES = """\b
Examples:
  queueduct ls                     every queue in the directory
  queueduct stat ticks --json      one queue's counters, for a script
  queueduct rm ticks               remove a queue's name
  queueduct top                    every queue, live
  queueduct web                    the same as a page, for a browser
  queueduct archive ticks --to lake/ticks        every item to Parquet, through Spark
  queueduct record ticks --to rec                the same without Spark
  queueduct replay rec --to ticks --speed 10     and back into a queue
  queueduct stress bounded --history runs/1      every operation recorded
  queueduct demo                   producers, a queue, Spark, a lake and candles, live
"""


EXPECTED = (QueueductError, ImportError, OSError, ValueError, TypeError, RuntimeError, MemoryError)


class Failure(click.ClickException):
    """An error of a subcommand: one line on stderr, and its exit code."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code  # type: ignore[misc]  # click reads it of the instance


class Program(click.Group):
    """Imports subcommands late, and reports the errors of all of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(importlib.import_module(COMMANDS[cmd_name]), cmd_name.replace("-", "_"))
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Reports a bad name, file or option as one line on stderr, without a traceback."""
        try:
            return super().invoke(ctx)
        except (click.exceptions.Exit, click.Abort):
            raise
        except EXPECTED as error:
            text = str(error)
            if isinstance(error, ImportError) and "pip install" not in text:
                text += "; Spark is an extra: pip install 'queueduct[spark]'"
            raise Failure(text, ctx.meta.get(ERROR_EXIT_CODE, 1)) from error


@click.group(cls=Program, epilog=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="queueduct")
def main() -> None:
    """Concurrent queues in shared memory.

    Queues live in $QUEUEDUCT_DIR, by default /dev/shm/queueduct-<uid>.
    """
