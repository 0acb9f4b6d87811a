"""Run a queue hard, with kills, and record every operation."""
