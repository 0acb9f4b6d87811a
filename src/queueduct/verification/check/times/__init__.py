"""Conditions on the times of operations alone."""
