"""EXPLAIN: a plan as text, as a document, and as pictures made of it. It renders and decides nothing."""

FORMATS = ("text", "json", "html")
