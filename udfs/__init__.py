"""Functions of the language that a W-join statement may call."""
