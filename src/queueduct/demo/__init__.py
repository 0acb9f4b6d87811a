"""Demonstrations: ``one_queue``, processes on one queue; ``flow``, from producers through Spark to Parquet."""
