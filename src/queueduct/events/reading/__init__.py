"""Readers of a log: their position, and how items are fetched."""
