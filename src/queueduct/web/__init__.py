"""The page of all queues, live: a server of the standard library, which nobody beyond this host reaches."""
