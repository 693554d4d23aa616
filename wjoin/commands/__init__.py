"""The command line: what its commands do and print."""
