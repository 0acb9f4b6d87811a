"""OverwritingQueue: a feed in which the latest messages win."""
