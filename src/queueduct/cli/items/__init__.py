"""The commands that carry items: put, get, tail; their files and pipes."""
