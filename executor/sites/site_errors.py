"""What a site refuses, cannot give, or has in a type that does not fit, as an error of a running query."""

import contextlib
from collections.abc import Iterator

import pyarrow as pa

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


def as_declared(values: pa.Array, declared: pa.DataType, column: str) -> pa.Array:
    """Return a site's values of a column in the type that its stream was declared with.

    Raises WJoinError WJ715 where that cannot hold them.
    """
    if values.type == declared:
        return values
    try:
        return values.cast(declared)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        message = (
            f"the column {column} is {values.type} at its site, and a value does not fit {declared}: {error}"
        )
        help = f"declare {column} with the type that it has at the site, and CAST it in a computed column"
        raise WJoinError("WJ715", message, help=help) from error
