"""Spark looks for modules of this name's form by itself: with this one, ``format("penstock")`` needs no registration."""

from penstock.spark.source import PenstockSource as DefaultSource

__all__ = ["DefaultSource"]
