"""What a run records, and how a record is read."""
