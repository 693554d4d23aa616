"""The physical plan, and what follows from the choices in it: columns, retention, probes."""
