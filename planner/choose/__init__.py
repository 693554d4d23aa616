"""Which plan is taken: what hints, settings and a checkpoint leave, and what that costs."""
