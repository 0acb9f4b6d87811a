"""The models of the growing queue."""
