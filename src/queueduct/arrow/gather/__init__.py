"""Fields of records gathered into columns, a block of records at a time, in Arrow's memory."""
