"""Wrong configurations (NAME.toml in wrong/) and the exact errors that they give (NAME.err).

WJOIN_REWRITE=1 writes the .err files anew; read the difference before keeping it.
"""

import os
from pathlib import Path

import pytest

from wjoin.grammar.errors import WJoinError
from wjoin.sites.columns import parse_columns
from wjoin.sites.config import read_config

FOLDER = Path(__file__).parent / "wrong"
WRONG = sorted(FOLDER.glob("*.toml"))


@pytest.mark.parametrize("path", WRONG, ids=lambda path: path.stem)
def test_error(path: Path) -> None:
    with pytest.raises(WJoinError) as caught:
        read_config(path)
    expected = path.with_suffix(".err")
    if os.environ.get("WJOIN_REWRITE") == "1":
        expected.write_text(f"{caught.value}\n", "utf-8")
    assert f"{caught.value}\n" == expected.read_text("utf-8")


def test_every_code_of_a_configuration_has_a_file() -> None:
    codes = {path.with_suffix(".err").read_text("utf-8")[6:11] for path in WRONG}
    assert {"WJ901", "WJ902", "WJ904"} <= codes


def test_a_whole_configuration(tmp_path: Path) -> None:
    file = tmp_path / "site.toml"
    file.write_text(
        """
        [site]
        listen = "[::1]:7777"
        memory = "2 GB"
        sync = true
        metrics = "127.0.0.1:7778"
        [site.limits]
        max_calls = 7
        max_request_bytes = "1 MiB"
        [streams.a]
        source = "in"
        format = "csv"
        schema = "id BIGINT, ts TIMESTAMP, deep STRUCT<a: ARRAY<MAP<STRING, DECIMAL(5, 2)>>, `b c`: DATE>"
        time = "ts"
        key = "id"
        window = "1.5 hours"
        max_bytes = "10 GB"
        consumer_lease = "2 days"
        [streams.b]
        source = "kafka://host:9092/topic"
        schema = "n INT"
        time = "n"
        window = 500
        options = { "security.protocol" = "SSL" }
        """,
        "utf-8",
    )
    config = read_config(file)
    assert (config.listen.host, config.listen.loopback) == ("::1", True)
    assert (config.limits.max_calls, config.limits.max_request_bytes) == (7, 1 << 20)
    one, other = config.streams
    assert one.source == str(tmp_path / "in")
    assert one.keys == ("id",)
    assert (one.retention.window, one.retention.most_bytes) == (5_400_000_000, 10_000_000_000)
    assert one.retention.lease == 172_800
    assert (other.source, other.retention.window) == ("kafka://host:9092/topic", 500)
    assert str(one.schema.field("deep").type) == (
        "struct<a: list<item: map<string, decimal128(5, 2)>>, b c: date32[day]>"
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "id",
        "id BIGINT,",
        "id NUMBER",
        "id BIGINT x",
        "id ARRAY<INT",
        "a INT, a INT",
        "a ;",
        "a DECIMAL(40)",
    ],
)
def test_columns_that_cannot_be_read(text: str) -> None:
    with pytest.raises(WJoinError) as caught:
        parse_columns(text, "streams.a.schema")
    assert caught.value.code == "WJ904"
