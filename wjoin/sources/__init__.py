"""Streams as they are declared: catalog, formats, records, and sites."""
