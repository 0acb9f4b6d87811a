"""Queues as watchers see them: who takes part in them, and handles that never write."""
