"""Streams at sites: where they are, their rows by number, and the full tuples of results."""
