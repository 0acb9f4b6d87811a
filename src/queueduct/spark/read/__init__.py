"""The data source: batch, stream, and streams of queues that forget."""
