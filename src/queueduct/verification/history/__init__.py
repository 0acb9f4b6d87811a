"""The history of a run: rows that outlive their worker, and the files they become."""
