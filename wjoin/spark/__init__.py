"""The Spark below: how it is started, guarded and prepared, and what its failures mean."""
