"""BoundedQueue and GrowingQueue: queues whose items lie in rings."""
