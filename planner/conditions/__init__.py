"""The conditions of WHERE and ON: sorted, read, and what of them a join can test or search for."""
