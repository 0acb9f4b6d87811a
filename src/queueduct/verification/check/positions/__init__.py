"""Conditions on the operations at each position."""
