"""Queries that run: those of a session, and what they say."""
