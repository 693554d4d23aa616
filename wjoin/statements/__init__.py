"""What each kind of statement does, from its parsed text to its answer."""
