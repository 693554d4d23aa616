"""The results that a sink keeps, by the time at which they were committed."""
