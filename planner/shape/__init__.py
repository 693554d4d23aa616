"""From equalities to stages: which streams meet on which key, in which order, and what is read of each."""
