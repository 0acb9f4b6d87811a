"""Spark: the data source and sink "penstock", a session to start with, and pipelines to run. Needs penstock[spark]."""

from penstock.spark.session import session

__all__ = ["session"]
