"""Spark looks for modules named like this one by itself: ``format("penstock")`` needs no registration."""

from penstock.spark.source import PenstockSource as DefaultSource

__all__ = ["DefaultSource"]
