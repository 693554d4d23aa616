"""A SELECT block and its relations: every name gets its column, every stream its event time."""
