"""Between numpy records, Arrow columns and Spark's schema."""
