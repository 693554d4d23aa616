"""The test kit: neutral statements, two oracles, random cases, and a harness for exact micro-batches.

``statement`` and ``expressions`` describe a W-join without the product's own parser;
``oracle`` computes its result with DuckDB or by brute force; ``lateness`` models watermarks
over micro-batches; ``strategies`` draws random cases; ``harness`` runs statements on Spark;
``planned`` plans statements without Spark, and makes blocks of rows; ``slow_link`` is a link with a rate
and a latency between a client and a server; ``processes`` samples the
memory of a process and all that it starts; ``waiting`` waits for what others do.
"""
