"""A checkpoint's files: its log, what is committed, and another number of workers."""
