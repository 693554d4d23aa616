"""What a site refuses or cannot give, as an error of a running query."""

import contextlib
from collections.abc import Iterator

from wjoin.grammar.errors import WJoinError
from wjoin.sites.failures import SiteError

CODES = {"gone": "WJ714", "lineage": "WJ715", "schema": "WJ715"}
"""Codes by the kind of a site's error; of all others it is WJ713."""


@contextlib.contextmanager
def told() -> Iterator[None]:
    """Raise what a site raises inside as WJoinError WJ713, WJ714 or WJ715, with the site's address."""
    try:
        yield
    except SiteError as error:
        message = f"{error.message} ({error.site})"
        raise WJoinError(CODES.get(error.kind, "WJ713"), message, help=error.help) from error
