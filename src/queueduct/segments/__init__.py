"""Files that hold queues: named, made, validated, opened, listed and removed."""
