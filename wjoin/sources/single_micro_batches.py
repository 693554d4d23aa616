"""Sites before Spark 4.2: a start on a checkpoint reads a single micro-batch, however much there is."""

from wjoin.executor.spark.site_source import ONE_MICRO_BATCH
from wjoin.sources.catalog import Catalog
from wjoin.sources.format_options import own_option


def may_leave_rows(catalog: Catalog, read: int) -> bool:
    """Return whether a run to the end of its streams, which has ``read`` some rows, may have left some there.

    Since 4.2 Spark asks a source in Python for more until it has what was there at the start.
    """
    if not ONE_MICRO_BATCH or not read:
        return False
    at_sites = (each.site.options for each in catalog.streams.values() if each.site is not None)
    return any(own_option(options, "maxRowsPerTrigger") is not None for options in at_sites)
