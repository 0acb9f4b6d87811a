"""What every queue has: the public surface, the backend below it, and asyncio."""
