"""The test kit: runs statements over rows that come in given micro-batches; brokers and sites for tests.

``harness`` runs a statement on Spark, over tables or over a stream cut into exact micro-batches, also with
restarts; ``rows`` makes rows of results that can be compared. ``broker`` is a Kafka broker and ``site`` a
site, each a process on this machine; ``waiting`` waits for what others do.
"""
