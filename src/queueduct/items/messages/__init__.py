"""Any object as the message of a queue that replaces multiprocessing's."""
