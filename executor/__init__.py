"""Physical plan to DataFrame. Sees no statement text."""
