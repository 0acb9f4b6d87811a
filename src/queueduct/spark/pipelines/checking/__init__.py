"""The conditions of a correct queue as numpy on rows, the record that they are read from, and how Spark runs them."""
