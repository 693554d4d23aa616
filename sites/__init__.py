"""Sites: servers beside the data that keep the windows of streams, and what asks them for rows.

A site takes the rows of its streams from local sources, numbers them, and serves some of their columns in
order, and whole rows by number or by join value (Semijoin streams, sections 3 and 4). Nothing here knows
Spark.
"""
