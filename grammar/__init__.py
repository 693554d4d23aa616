"""Text to statement tree: the W-join clause, its declarations and their places in the text."""
