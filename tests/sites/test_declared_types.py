"""Streams at a site whose columns are declared with types of their own, and decimals of any scale as keys."""

from collections import Counter
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import wjoin
from tests.sites.test_joins import put, ran
from wjoin.testing.site import Site

pytestmark = [pytest.mark.thorough, pytest.mark.spark]

STREAM = """
[streams.{name}]
source = "{folder}"
format = "parquet"
time = "ts"
window = "1 hour"
poll = "100 ms"
"""

PRICES = [Decimal(each) for each in ("1.5", "-2.5", "0", "1.2345", "99999999.99")]

JOIN = """
SELECT {hint} A.id, B.id AS other, A.d, B.d AS larger FROM short A, long B
WINDOW = 5 SECONDS WHERE (- A.d) = (- B.d)
"""


def test_decimals(session: wjoin.Session, tmp_path: Path) -> None:
    """Of other scales they are keys, also by an expression; a type that is too small for a value is told."""
    prices = {"short": (PRICES[:3], pa.decimal128(10, 2)), "long": (PRICES, pa.decimal128(20, 4))}
    for name, (values, kind) in prices.items():
        times = pa.array(range(len(values)), pa.timestamp("us", "UTC"))
        rows = {"id": pa.array(range(len(values)), pa.int64()), "ts": times, "d": pa.array(values, kind)}
        put(pa.table(rows), tmp_path / name, 0)
    streams = "".join(STREAM.format(name=name, folder=tmp_path / name) for name in prices)
    with Site(tmp_path / "site", streams) as site:
        for name, (values, _) in prices.items():
            site.wait_for(name, len(values))
            declare(session, site, name)
        for hint in ("PLAN(SEMIJOIN)", "PLAN(SIMPLE)"):
            found = ran(session, JOIN.format(hint=f"/*+ {hint} */"), tmp_path / hint[5:9])
            assert found == Counter((n, n, value, value) for n, value in enumerate(PRICES[:3]))
        declare(session, site, "long", "(id BIGINT, ts TIMESTAMP, d DECIMAL(10, 2))")
        with pytest.raises(wjoin.WJoinError, match="the column d is decimal128") as told:
            ran(session, JOIN.format(hint=""), tmp_path / "wrong")
        assert "WJ715" in str(told.value)


def declare(session: wjoin.Session, site: Site, name: str, columns: str = "") -> None:
    session.sql(f"""
        CREATE OR REPLACE STREAM {name} {columns} AT SITE '{site.url}'
        WATERMARK ts DELAY OF INTERVAL 2 SECONDS""")
