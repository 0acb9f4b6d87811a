"""EventQueue: a log that every reader sees whole."""
