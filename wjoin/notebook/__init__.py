"""W-join SQL in notebooks: the magics ``%wjoin`` and ``%%wjoin``, tables, and running queries as live cells.

IPython is imported here only, and only once ``%load_ext wjoin`` asks for it.
"""
