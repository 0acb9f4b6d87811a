"""Source and sink beside Spark's own, in one session and in turn."""
