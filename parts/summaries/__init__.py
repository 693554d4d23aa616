"""Summaries: what nodes tell each other of their windows, and where rows go by what is known."""
