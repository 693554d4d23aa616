"""SQL text of Spark: its trees, the names and calls in it with their places, and edits that splice it."""
