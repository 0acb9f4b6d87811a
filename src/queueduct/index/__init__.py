"""IndexQueue: small numbers between threads."""
