"""Warnings to users: told where their own code called wjoin."""

import sys
import warnings

AGAIN_SECONDS = 60.0
"""When what goes on while a query runs is told of again."""


def warn(warning: Warning) -> None:
    """Warn with the caller's own line as the place, as ``stacklevel`` would from a fixed depth."""
    frame, depth = sys._getframe(1), 2
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).startswith("wjoin."):
        frame, depth = frame.f_back, depth + 1
    warnings.warn(warning, stacklevel=depth)


def tell(warning: Warning) -> None:
    """Warn of something that happens while a query runs: no line of a program is its place."""
    warnings.warn_explicit(warning, type(warning), "wjoin", 0)
