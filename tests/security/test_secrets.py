"""Secrets in statements, and what acts on a terminal in texts of others, are shown nowhere."""

import re

import pytest

from tests.packages import ROOT
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.parser import parse_script
from wjoin.grammar.shown import REDACTED, redacted, redacted_at, shown_lines
from wjoin.grammar.spans import Span
from wjoin.grammar.tokens import scan
from wjoin.sources.format_options import STREAM_OPTIONS, check_options
from wjoin.spark.redacting import REDACTING
from wjoin.spark.spark_failures import placed

TOKEN = "s3cr3t-0f-Alice"

FORMS = {
    "plain": f"OPTIONS (site 'a', token '{TOKEN}')",
    "equal": f'OPTIONS (token = "{TOKEN}", site "a")',
    "quoted name": f"OPTIONS (`token` '{TOKEN}')",
    "name in a string": f"OPTIONS ('token' = '{TOKEN}')",
    "raw": f"OPTIONS (token r'{TOKEN}')",
    "in parts": f"OPTIONS (token 'x' /* y */ '{TOKEN}')",
    "behind comments": f"OPTIONS (token -- mine\n /* it */ '{TOKEN}')",
    "between dollars": f"OPTIONS (token $${TOKEN}$$)",
    "not closed": f"OPTIONS (token '{TOKEN})",
    "an escape": f"OPTIONS (token 'a\\'{TOKEN}')",
    "without quotes": f"OPTIONS (site 'a', token {TOKEN})",
    "misspelt": f"OPTOINS (token {TOKEN})",
    "no options": f"CREATE STREAM a AT SITE 'b' token '{TOKEN}'",
    "a password": f"OPTIONS (kafka.ssl.keystore.password '{TOKEN}')",
    "a login": f"""OPTIONS (kafka.sasl.jaas.config 'Plain required username="a" password="{TOKEN}";')""",
    "a login, escaped": f'OPTIONS (kafka.sasl.jaas.config "Plain required password=\\"{TOKEN}\\";")',
    "an access key": f"OPTIONS (fs.s3a.access.key '{TOKEN}')",
    "a setting": f"SET fs.s3a.secret.key = {TOKEN}",
    "an address": f"OPTIONS (path 'https://x/y?access_token={TOKEN}&z=1')",
    "a name that is wrong": f"OPTIONS (tokn '{TOKEN}')",
    "a name that is lost": f"OPTIONS ('{TOKEN}', site 'a')",
    "a name at once": f"OPTIONS (token'{TOKEN}')",
    "behind one that is none": f"SELECT 'token' AS a; OPTIONS (token '{TOKEN}')",
    "behind a path": f"OPTIONS (tokenFile '/a/token', path 'my token', token '{TOKEN}')",
    "behind a quote that is lost": f"OPTIONS (site 'a, token '{TOKEN}')",
    "a user": f"OPTIONS (site 'grpc://alice:{TOKEN}@x:1')",
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_a_secret_is_redacted_in_whatever_form(text: str):
    assert TOKEN not in redacted(text)
    assert REDACTED in redacted(text)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE STREAM a (token STRING, ts TIMESTAMP) USING parquet OPTIONS (path '/a', tokenFile '/b')",
        "SELECT A.token, 'secret' FROM a A, b B WINDOW = 1 SECOND WHERE A.token = B.token",
        "SELECT token FROM a",
        "CREATE STREAM a AT SITE 'b' OPTIONS (tokenFile '/etc/token', patience '3', timeout '4')",
    ],
)
def test_what_is_no_secret_stays(text: str):
    assert redacted(text) == text


def test_a_place_is_the_same_piece():
    text = f"OPTIONS (site 'a', token '{TOKEN}', wrong 'b')"
    moved, span = redacted_at(text, Span(text.index("wrong"), text.index("wrong") + 5))
    assert span.of(moved) == "wrong"
    inside, span = redacted_at(text, Span(text.index(TOKEN), text.index(TOKEN) + 3))
    assert inside[span.start :].startswith(REDACTED)


def test_no_error_of_a_wrong_statement_has_the_secret():
    """Each of the words of statements is left out, doubled, or the end; so is each sign around the secret."""
    refused = 0
    options = f"OPTIONS (topic 'a', kafka.ssl.key.password = '{TOKEN}')"
    for text in (
        f"CREATE STREAM a (k BIGINT, ts TIMESTAMP) AT SITE 'grpc://x:1' STREAM b OPTIONS (token '{TOKEN}') "
        "WATERMARK ts DELAY OF INTERVAL 1 SECOND",
        f"CREATE SINK a USING kafka {options} PARTITIONED BY (k)",
    ):
        tokens = scan(text)
        cut = [(each.start, each.end) for each in tokens]
        around = range(text.index("OPTIONS"), text.index(")", text.index(TOKEN)))
        cut += [(place, place + 1) for place in around]
        for start, end in cut:
            if {"OPTIONS", "token", "password"} & {text[start:end]}:
                # Nothing then tells what the value is.
                continue
            for wrong in (text[:start] + text[end:], text[:end] + text[start:], text[:end]):
                if TOKEN not in wrong:
                    continue
                try:
                    parse_script(wrong)
                except WJoinError as error:
                    refused += 1
                    assert TOKEN not in str(error), wrong
                    assert TOKEN not in repr(error), wrong
    assert refused > 50


def test_an_option_that_there_is_not_is_shown_at_its_place_without_the_secret():
    text = f"CREATE STREAM a AT SITE 'grpc://x:1' OPTIONS (token '{TOKEN}', rate '3')"
    (statement,) = parse_script(text)
    assert TOKEN not in repr(statement)
    with pytest.raises(WJoinError) as refused, placed(text):
        check_options(["rate"], STREAM_OPTIONS, "wjoin_site", statement.span, text)
    _, _, _, line, caret, _ = str(refused.value).splitlines()
    assert line.endswith(f"OPTIONS (token {REDACTED}, rate '3')")
    assert line[caret.index("^") :].startswith("rate") and caret.count("^") == 4


def test_long_texts_are_searched_in_a_moment():
    for piece in (
        "token",
        "token ",
        "token'",
        "token/*",
        "OPTIONS (token ",
        "SET token",
        "://a:",
        "'\\",
        "?token",
    ):
        redacted(piece * (50_000 // len(piece)))


@pytest.mark.parametrize("sign", ["\x1b[2J", "\x07", "\u202e", "\ud800", "\r", "\x85", "\u2028"])
def test_what_acts_on_a_terminal_is_written_out_in_errors(sign: str):
    text = f"SELECT 1; CREATE STREAM `a{sign}b` USING\nparquet"
    error = WJoinError(
        "WJ602", f"there is no a{sign}b", span=Span(10, len(text)), text=text, source_name=f"{sign}"
    )
    told = str(error)
    assert all(each.isprintable() for each in told.split("\n"))
    assert told.count("\n") == 5
    # The mark is as wide as what it marks.
    line, caret = told.split("\n")[3:5]
    assert len(line) == len(caret)


def test_a_name_forges_no_line_of_an_error():
    told = str(WJoinError("WJ602", "there is no a\nerror[WJ999]: all is lost"))
    assert len(told.splitlines()) == 2
    assert shown_lines("a\n\tb\x1b") == "a\n\tb\\x1b"


def test_java_redacts_by_the_same_expression():
    ((name, regex),) = REDACTING.items()
    source = (ROOT / "java/wjoin/sql/Planner.java").read_text("utf-8")
    written = source.partition("String SECRETS =")[2].partition(";\n")[0]
    pieces = re.findall(r'"((?:[^"\\]|\\.)*)"', written)
    assert re.sub(r"\\(.)", r"\1", "".join(pieces)) == regex
    assert name in source
