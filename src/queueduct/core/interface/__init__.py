"""What the surface of a queue asks of its backend."""
