"""A history that does not fit in memory: Spark carries its rows into buckets."""
