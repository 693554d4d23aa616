"""A query with W-joins becomes Spark's: relations, delays, and the text that Spark is given."""
