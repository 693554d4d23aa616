"""Cost models: what a plan is expected to do, and what that costs."""
