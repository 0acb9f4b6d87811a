"""Pipelines: each is a function that starts a query, and a command that runs it to its end."""

from queueduct.spark.pipelines.queries import aggregate, archive

__all__ = ["aggregate", "archive"]
