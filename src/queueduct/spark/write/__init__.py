"""The sink: rows are staged by tasks and put at the commit."""
