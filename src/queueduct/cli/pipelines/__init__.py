"""The subcommands ``archive`` and ``aggregate``: Spark's queries, run to their end."""

from queueduct.cli.pipelines.commands import aggregate, archive

__all__ = ["aggregate", "archive"]
