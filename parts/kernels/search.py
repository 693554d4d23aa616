"""Searches for the rows of many tuples at once, in runs that are sorted by (code, something)."""

from wjoin.parts.kernels.candidates import Search
from wjoin.parts.kernels.runs import Int64Array, SortedRun


def rows_of_keys(run: SortedRun, search: Search) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return the tuples that find their code in a run near their time, and the row range of each.

    The run is sorted by code first.
    """
    tuples = search.near(run)
    if len(tuples) == 0:
        return tuples, tuples, tuples
    hits, start, end = run.keys.find(search.codes[tuples])
    return tuples[hits], start, end
