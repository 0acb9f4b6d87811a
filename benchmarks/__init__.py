"""The benchmarks of penstock, side by side with its peers: ``python -m benchmarks --help``."""
