"""What was measured of the ways to sites, kept for a while: ten streams of one site cost one measurement."""

import threading
import time

from wjoin.sites.protocol import MeasuredLink, SiteAddress

KEPT_SECONDS = 600.0
"""How long a measurement counts: links change."""

_known: dict[str, tuple[float, MeasuredLink]] = {}
"""The links that this process has measured, by the addresses of their sites, and when; no failures."""

_measuring = threading.Lock()


def link_to(address: SiteAddress) -> MeasuredLink:
    """Return the link to a site, measured within the last ten minutes. Raises SiteError."""
    # Arrow Flight takes a while to import, and only who reads a site needs it.
    from wjoin.sites.client import SiteClient

    # One at a time: two measurements would share the way, and each find half of it.
    with _measuring:
        measured = _known.get(address.url)
        if measured is None or measured[0] <= time.monotonic() - KEPT_SECONDS:
            with SiteClient(address) as client:
                measured = _known[address.url] = time.monotonic(), client.link()
        return measured[1]
