"""Histories, the stress runs that make them, and the check that judges them. Only check/on_spark needs Spark."""
