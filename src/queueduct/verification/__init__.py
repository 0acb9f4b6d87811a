"""Stress runs that record every operation, and the check of what they recorded."""
