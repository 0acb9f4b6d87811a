"""What an item is: its type, its exact value, its bytes, and views of it."""
