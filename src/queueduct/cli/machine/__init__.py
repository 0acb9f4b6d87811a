"""The commands about this machine: what it has, and how fast it is."""
