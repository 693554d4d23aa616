"""Routes: which worker stores a row, and which workers it visits."""
