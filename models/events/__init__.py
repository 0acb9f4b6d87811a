"""The models of the event queue."""
