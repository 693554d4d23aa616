"""The same join over a stream at a site and over the same rows in local Parquet files; and reading alone."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from sites_loads import COLUMNS, PacketLoad
from systems import wjoin_session

import wjoin

URL = "url"
"""The file beside the data with the address of the site."""

DELAY = "INTERVAL 1 SECOND"


@dataclass(frozen=True)
class SiteSystem:
    """One way to read the packets: its title, its query, and whether it joins them.

    ``whole_rows``: whether all rows come to Spark's sources.
    """

    title: str
    query: Callable[[SparkSession, Path, PacketLoad], DataFrame]
    joins: bool = True
    whole_rows: bool = True

    def load(self, load: PacketLoad) -> PacketLoad:
        """Return what it reads of a load."""
        return load if self.joins else load.alone

    def start(self, settings: Mapping[str, str]) -> SparkSession:
        """Start the embedded Spark of wjoin."""
        return wjoin_session(settings)


def joined(spark: SparkSession, folder: Path, load: PacketLoad, hint: str | None) -> DataFrame:
    """Return the join; without a hint all streams are read from local files."""
    session = wjoin.connect(spark)
    _declare(session, folder, load, "b", None)
    _declare(session, folder, load, "a", None if hint is None else _url(folder))
    return session.sql(
        f"""
        SELECT /*+ {hint or "PLAN(MULTIWAY)"} */ a.dest, a.ts AS one, b.ts AS other, a.payload
        FROM a, b WINDOW = {load.window} SECONDS WHERE a.dest = b.dest
        """
    )


def read(spark: SparkSession, folder: Path, load: PacketLoad, *, at_site: bool) -> DataFrame:
    """Return the rows of the first stream."""
    session = wjoin.connect(spark)
    _declare(session, folder, load, "a", _url(folder) if at_site else None)
    return session.sql("SELECT ts, dest, payload FROM a")


def _declare(session: wjoin.Session, folder: Path, load: PacketLoad, name: str, url: str | None) -> None:
    if url is None:
        where = f"USING parquet OPTIONS (path '{folder / name}', maxFilesPerTrigger '1')"
    else:
        where = f"AT SITE '{url}' STREAM {folder.name} OPTIONS (maxRowsPerTrigger '{load.packets}')"
    session.sql(f"CREATE OR REPLACE STREAM {name} ({COLUMNS[name]}) {where} WATERMARK ts DELAY OF {DELAY}")


def _url(folder: Path) -> str:
    return (folder.parent / URL).read_text()


SYSTEMS = {
    "wjoin-local": SiteSystem("wjoin, local Parquet", partial(joined, hint=None)),
    "wjoin-simple": SiteSystem("wjoin, PLAN(SIMPLE)", partial(joined, hint="PLAN(SIMPLE)")),
    "wjoin-semijoin": SiteSystem("wjoin, PLAN(SEMIJOIN)", partial(joined, hint="PLAN(SEMIJOIN)")),
    "wjoin-held": SiteSystem(
        "wjoin, SHIP(a = HELD)", partial(joined, hint="SHIP(a = HELD)"), whole_rows=False
    ),
    "read-local": SiteSystem("reading local Parquet", partial(read, at_site=False), joins=False),
    "read-site": SiteSystem("reading from the site", partial(read, at_site=True), joins=False),
}
