"""Runs that use a queue as hard as they can."""
