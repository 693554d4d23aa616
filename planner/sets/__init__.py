"""Window joins of several statements over the same streams, as one."""
