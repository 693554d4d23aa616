"""The queries of NEXMark that are window joins, in wjoin's words and in those of the others.

Each asks for what the published one does inside a window, which bounds the state. Those with a group or a
rank on top have it as ``after``, over the results of the join. q103 and q104, a semi and an anti join of
RisingWave's edition, count bids first; here they ask for a bid of at least the reserve.
"""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

COLUMNS = {
    "person": "id BIGINT, name STRING, city STRING, state STRING, millis BIGINT, came BIGINT, extra STRING",
    "auction": "id BIGINT, first_bid BIGINT, reserve BIGINT, ends BIGINT, seller BIGINT, category BIGINT, "
    "millis BIGINT, came BIGINT, extra STRING",
    "bid": "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, millis BIGINT, came BIGINT, "
    "extra STRING",
}
"""Those of the files, in their order."""

DELAY = 4
"""Seconds by which rows may be late, as in Flink's edition; these are in order."""


def declared(folder: Path, together: int) -> str:
    """Return what declares the streams of a folder for wjoin; ``together``: files a micro-batch, or 0."""
    limit = f", maxFilesPerTrigger '{together}'" if together else ""
    return _declared(f"USING csv OPTIONS (path '{folder}/{{}}', header 'false'{limit})")


def declared_topics(servers: str, prefix: str = "nexmark-", more: str = "") -> str:
    """Return what declares the streams that the generator has written to topics; ``more``: options."""
    options = f"kafka.bootstrap.servers '{servers}', subscribe '{prefix}{{}}'{more}"
    return _declared(f"USING kafka OPTIONS ({options}) FORMAT JSON")


def _declared(source: str) -> str:
    """Return what declares the streams, given where they are, with ``{}`` for the name of one."""
    expires = {"auction": ", expires AS timestamp_millis(ends)"}
    return "".join(
        f"""CREATE STREAM {stream} ({columns}, ts AS timestamp_millis(millis){expires.get(stream, "")})
            {source.format(stream)}
            WATERMARK ts DELAY OF INTERVAL {DELAY} SECONDS;"""
        for stream, columns in COLUMNS.items()
    )


class Join(Enum):
    """Which rows a query has: pairs, or those of its first stream with a partner, or without one."""

    INNER = "JOIN"
    SEMI = "LEFT SEMI JOIN"
    ANTI = "LEFT ANTI JOIN"


@dataclass(frozen=True)
class Query:
    """A join of ``streams`` (stream and alias, in order) on ``keys``.

    ``windows`` are wjoin's, ``bounds`` the same as conditions that Flink, Spark and DuckDB read alike.
    ``chain`` is the statement for Spark where it needs another: between two of its joins only one event time
    is left.
    """

    name: str
    about: str
    select: str
    streams: tuple[tuple[str, str], ...]
    keys: str
    windows: str
    bounds: str
    join: Join = Join.INNER
    after: str = ""
    chain: str = ""

    @property
    def wjoin(self) -> str:
        """The statement for wjoin."""
        first, *others = (f"{stream} AS {alias}" for stream, alias in self.streams)
        if self.join is Join.INNER:
            return f"SELECT {self.select} FROM {', '.join((first, *others))} {self.windows} WHERE {self.keys}"
        return (
            f"SELECT {self.select} FROM {first} {self.join.value} {others[0]} ON {self.keys} {self.windows}"
        )

    @property
    def plain(self) -> str:
        """The statement for Flink and DuckDB."""
        first, *others = (f"{stream} AS {alias}" for stream, alias in self.streams)
        condition = f"{self.keys} AND {self.bounds}"
        if self.join is Join.INNER:
            return f"SELECT {self.select} FROM {', '.join((first, *others))} WHERE {condition}"
        inside = f"EXISTS (SELECT 1 FROM {others[0]} WHERE {condition})"
        return f"SELECT {self.select} FROM {first} WHERE {'NOT ' * (self.join is Join.ANTI)}{inside}"

    @property
    def spark(self) -> str:
        """The statement for Spark's own joins."""
        if self.chain:
            return self.chain
        first, second = (f"{stream} AS {alias}" for stream, alias in self.streams)
        condition = f"{self.keys} AND {self.bounds}"
        return f"SELECT {self.select} FROM {first} {self.join.value} {second} ON {condition}"


_OPEN = "DWINDOW (A, B) = A.expires - A.ts AT MOST 10 MINUTES"
_LIFE = "B.ts BETWEEN A.ts AND A.ts + INTERVAL '10' MINUTE AND B.ts <= A.expires"
_AUCTION_BID = (("auction", "A"), ("bid", "B"))
_BOTH = "GREATEST(A.came, B.came) AS came"


def _apart(first: str, second: str, length: str) -> str:
    return f"{second}.ts BETWEEN {first}.ts - INTERVAL {length} AND {first}.ts + INTERVAL {length}"


_NEAR = _apart("P", "A", "'1' MINUTE")

QUERIES = (
    Query(
        "q3",
        "who sells in three states, within a minute",
        "P.name, P.city, P.state, A.id, GREATEST(A.came, P.came) AS came",
        (("auction", "A"), ("person", "P")),
        "A.seller = P.id AND A.category = 10 AND P.state IN ('OR', 'ID', 'CA')",
        "WINDOW (A, P) = 1 MINUTE",
        _apart("A", "P", "'1' MINUTE"),
    ),
    Query(
        "q4",
        "the closing prices of a category: bids within their auction's life",
        f"A.id, A.category, B.price, {_BOTH}",
        _AUCTION_BID,
        "A.id = B.auction",
        _OPEN,
        _LIFE,
        after="SELECT category, AVG(final) AS average FROM "
        "(SELECT id, category, MAX(price) AS final FROM joined GROUP BY id, category) AS q GROUP BY category",
    ),
    Query(
        "q8",
        "new persons and their auctions, RANGE 12 HOURS",
        "P.id, P.name, A.reserve, GREATEST(A.came, P.came) AS came",
        (("person", "P"), ("auction", "A")),
        "P.id = A.seller",
        "WINDOW (P, A) = 12 HOURS",
        _apart("P", "A", "'12' HOUR"),
    ),
    Query(
        "q9",
        "the winning bid of an auction: bids within its life",
        f"A.id, A.seller, A.category, A.reserve, A.extra, B.bidder, B.price, B.millis, {_BOTH}",
        _AUCTION_BID,
        "A.id = B.auction",
        _OPEN,
        _LIFE,
        after="SELECT id, seller, bidder, price, millis FROM (SELECT *, ROW_NUMBER() OVER "
        "(PARTITION BY id ORDER BY price DESC, millis, bidder) AS place FROM joined) AS q WHERE place = 1",
    ),
    Query(
        "q20",
        "bids with their auction, of a category, within a minute",
        "B.auction, B.bidder, B.price, B.channel, B.extra AS bid_extra, "
        f"A.seller, A.reserve, A.extra, {_BOTH}",
        (("bid", "B"), ("auction", "A")),
        "B.auction = A.id AND A.category = 10",
        "WINDOW (B, A) = 1 MINUTE",
        _apart("B", "A", "'1' MINUTE"),
    ),
    Query(
        "q103",
        "auctions with a bid of their reserve within their life (semi)",
        "A.id, A.seller, A.reserve, A.came",
        _AUCTION_BID,
        "A.id = B.auction AND B.price >= A.reserve",
        _OPEN,
        _LIFE,
        join=Join.SEMI,
    ),
    Query(
        "q104",
        "auctions without one (anti)",
        "A.id, A.seller, A.reserve, A.came",
        _AUCTION_BID,
        "A.id = B.auction AND B.price >= A.reserve",
        _OPEN,
        _LIFE,
        join=Join.ANTI,
    ),
    Query(
        "three",
        "bids for the auctions of new persons: three streams",
        "P.name, A.id, B.bidder, B.price, GREATEST(P.came, A.came, B.came) AS came",
        (("person", "P"), ("auction", "A"), ("bid", "B")),
        "P.id = A.seller AND A.id = B.auction",
        f"WINDOW (P, A) = 1 MINUTE AND {_OPEN}",
        f"{_NEAR} AND {_LIFE}",
        chain="SELECT A.name, A.id, B.bidder, B.price, GREATEST(A.p_came, A.came, B.came) AS came FROM "
        "(SELECT P.name, P.came AS p_came, A.id, A.ts, A.expires, A.came FROM person AS P JOIN auction "
        f"AS A ON P.id = A.seller AND {_NEAR}) AS A JOIN bid AS B "
        f"ON A.id = B.auction AND {_LIFE}",
    ),
)


def query(name: str) -> Query:
    """Return the query with a name."""
    return next(each for each in QUERIES if each.name == name)
