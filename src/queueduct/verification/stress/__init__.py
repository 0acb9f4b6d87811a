"""Stress runs: workers use a queue as hard as they can."""
