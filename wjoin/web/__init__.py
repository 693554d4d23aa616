"""A live page of running queries: a page with numbers that move, the same as JSON, and for Prometheus."""
