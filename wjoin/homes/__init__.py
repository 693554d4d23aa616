"""Where the state of a query is, and how its tasks learn that."""
