"""EXPLAIN MATCH: why rows are no result, and at which step of a join all rows are lost."""
