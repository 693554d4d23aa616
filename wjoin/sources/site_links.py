"""What was measured of the ways to sites, kept for a while: ten streams of one site cost one measurement."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from wjoin.sites.protocol import Link, SiteAddress

KEPT_SECONDS = 600.0
"""How long a measurement counts: links change."""


@dataclass
class Links:
    """The links that this process has measured lately, by the addresses of their sites.

    ``measure`` asks a site, and raises SiteError; a failure is not kept. ``clock`` counts seconds.
    """

    measure: Callable[[SiteAddress], Link]
    clock: Callable[[], float] = time.monotonic
    _known: dict[str, tuple[float, Link]] = field(default_factory=dict)
    _measuring: threading.Lock = field(default_factory=threading.Lock)

    def link(self, address: SiteAddress) -> Link:
        """Return the link to a site, measured within the last ten minutes. Raises SiteError."""
        # One at a time: two measurements would share the way, and each find half of it.
        with self._measuring:
            fresh = self.clock() - KEPT_SECONDS
            self._known = {url: each for url, each in self._known.items() if each[0] > fresh}
            if address.url not in self._known:
                link = self.measure(address)
                self._known[address.url] = self.clock(), link
            return self._known[address.url][1]


def _measured(address: SiteAddress) -> Link:
    # Arrow Flight takes a while to import, and only who reads a site needs it.
    from wjoin.sites.client import SiteClient

    with SiteClient(address) as client:
        return client.link()


LINKS = Links(_measured)
"""Those of this process."""
