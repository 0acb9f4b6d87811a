"""Segments: the files that hold queues. They are created, validated, opened, listed and removed here."""
