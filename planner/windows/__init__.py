"""The window clause as bounds on differences of event times."""
