"""Jobs that people run: each is a function that starts a query, and a command that sees it through."""

from queueduct.spark.pipelines.queries import aggregate, archive

__all__ = ["aggregate", "archive"]
