"""Full tuples of results: from the mirror window, else from their sites (Semijoin streams, section 4.2)."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from wjoin.executor.sites.mirror import Mirror
from wjoin.executor.sites.site_errors import told
from wjoin.executor.sites.stream import SiteStream, at_site, numbered, sites_of
from wjoin.parts.kernels.runs import Int64Array, int64_view
from wjoin.sites.protocol import ROW, SiteAddress

if TYPE_CHECKING:
    from wjoin.sites.client import SiteClient


@dataclass(frozen=True)
class Fetching:
    """Fetches columns of a stream's rows by their numbers, each row once while the mirror has it."""

    stream: SiteStream
    columns: tuple[str, ...]
    mirror: Mirror

    def tuples(self, numbers: Int64Array) -> pa.RecordBatch:
        """Return the columns of some rows, in the order of their whole numbers (int64, repeats allowed).

        Raises WJoinError WJ713, WJ714 and WJ715 where a site cannot be reached or has a row no more.
        """
        wanted, places = np.unique(numbers, return_inverse=True)
        found, missing = self.mirror.find(wanted)
        if len(missing):
            fetched = self._fetched(missing)
            self.mirror.keep(fetched)
            found.append(fetched)
        whole = pa.concat_batches(found) if len(found) > 1 else found[0]
        order = np.argsort(int64_view(whole.column(ROW)), kind="stable")
        return whole.select(self.columns).take(pa.array(order[places]))

    def _fetched(self, numbers: Int64Array) -> pa.RecordBatch:
        """Return rows of ascending numbers from their sites, which are asked at once."""
        sites = sites_of(numbers)
        asked = np.unique(sites)
        parts = [numbers[sites == site] for site in asked]
        with ThreadPoolExecutor(len(parts)) as pool:
            batches = list(pool.map(self._from_site, asked.tolist(), parts))
        return pa.concat_batches(batches) if len(batches) > 1 else batches[0]

    def _from_site(self, site: int, numbers: Int64Array) -> pa.RecordBatch:
        client = client_of(self.stream.addresses[site])
        own = at_site(numbers)
        with told():
            batch = client.full(self.stream.stream, self.stream.lineages[site], own, self.columns)
        columns = [batch.column(name) for name in self.columns]
        whole = pa.array(numbered(site, own, partial=False))
        return pa.RecordBatch.from_arrays([whole, *columns], [ROW, *self.columns])


def fetched_columns(
    fetching: Sequence[tuple[Fetching, Int64Array]],
) -> list[pa.RecordBatch]:
    """Return the tuples of several streams; their sites are asked at the same time."""
    if len(fetching) < 2:
        return [each.tuples(numbers) for each, numbers in fetching]
    with ThreadPoolExecutor(len(fetching)) as pool:
        return list(pool.map(lambda pair: pair[0].tuples(pair[1]), fetching))


@cache
def client_of(address: SiteAddress, block_bytes: int | None = None) -> "SiteClient":
    """Return this process's client of a site: a connection outlives a micro-batch."""
    # Arrow Flight takes a while to import, and only who reads a site needs it.
    from wjoin.sites.client import SiteClient

    return SiteClient(address, block_bytes=block_bytes)
