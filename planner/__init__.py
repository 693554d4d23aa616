"""Statement tree and schemas to physical plan. Imports no Spark."""
