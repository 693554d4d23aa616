"""What approximate joins of streams at sites tell in the offsets of their streams: results missed, and costs.

An offset tells all since its query began (executor/sites/likely_told.py), so a micro-batch has done what its
end tells beyond its start.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from wjoin.executor.sites.likely_told import Told
from wjoin.measured.offsets import offsets_of

RESULTS = ("found", "missing", "least", "most")


def choices(body: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, dict[str, int]]]:
    """Return what a micro-batch has told: of results (``RESULTS``), and what each site was asked."""
    results: dict[str, float] = {}
    sites: dict[str, dict[str, int]] = {}
    for source in body.get("sources", ()):
        begin, end = (_told(source.get(name)) for name in ("startOffset", "endOffset"))
        if end is None:
            continue
        before = begin or Told()
        for name in RESULTS:
            results[name] = results.get(name, 0.0) + getattr(end, name) - getattr(before, name)
        for url, counts in end.sites.items():
            known = before.sites.get(url)
            own = sites.setdefault(url, {})
            for name, value in counts.__dict__.items():
                own[name] = own.get(name, 0) + value - (0 if known is None else getattr(known, name))
        late = end.late - before.late
        results["late"] = results.get("late", 0.0) + late
    return results, sites


def _told(offset: Any) -> Told | None:
    likely = offsets_of(offset).get("likely")
    return Told.of_json(likely.get("told", {})) if isinstance(likely, Mapping) else None


def site_rows(sites: Mapping[str, Mapping[str, int]]) -> Iterator[tuple[str, ...]]:
    """Yield a line for each site: its address, rows, requests, bytes of summaries."""
    for url, counts in sites.items():
        yield url, *(f"{counts.get(name, 0):,}" for name in ("rows", "messages", "summary_bytes"))


SITES_HEAD = ("site", "rows there", "requests", "bytes of summaries")
