"""The benchmarks of queueduct, side by side with its peers: ``python -m benchmarks --help``."""
