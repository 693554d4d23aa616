"""What starts Spark's Python workers. This folder itself is on their path: nothing else belongs here."""
