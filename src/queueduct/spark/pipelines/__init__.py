"""Jobs that people run: each is a function that starts a query, and a command that sees it through."""

from queueduct.spark.pipelines.aggregate import aggregate
from queueduct.spark.pipelines.archive import archive

__all__ = ["aggregate", "archive"]
