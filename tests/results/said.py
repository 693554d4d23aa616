"""Joins in the words of Spark, Flink, ksqlDB and Azure, each with the window clause that says the same.

``imp``, ``clk`` and ``buy`` are streams by a TIMESTAMP, ``imp_n`` and ``clk_n`` by a TIMESTAMP_NTZ, ``ta``
and ``tb`` by a BIGINT.
"""

from typing import NamedTuple


class Said(NamedTuple):
    """A statement without a window clause, and the same with one; ``sparks``: Spark reads the first, too."""

    name: str
    words: str
    form: str
    sparks: bool = True


_TWO = "SELECT I.n, C.n AS m FROM imp I JOIN clk C ON I.id = C.id AND {}"
_COMMA = "SELECT I.n, C.n AS m FROM imp I, clk C WHERE I.id = C.id AND {}"
_FORM = "SELECT I.n, C.n AS m FROM imp I, clk C WINDOW (I, C) BETWEEN {} WHERE I.id = C.id"
_LEFT = "SELECT I.n, C.n AS m FROM imp I LEFT JOIN clk C ON I.id = C.id{}"
_NTZ = "SELECT I.n, C.n AS m FROM imp_n I JOIN clk_n C ON I.id = C.id AND {}"
_NTZ_FORM = "SELECT I.n, C.n AS m FROM imp_n I, clk_n C WINDOW (I, C) BETWEEN {} WHERE I.id = C.id"
_WHOLE = "SELECT A.n, B.n AS m FROM ta A JOIN tb B ON A.id = B.id AND {}"
_WHOLE_FORM = "SELECT A.n, B.n AS m FROM ta A, tb B WINDOW (A, B) BETWEEN {} WHERE A.id = B.id"
_MINUTES = "0 SECONDS AND 10 MINUTES"


def _two(name: str, condition: str, window: str) -> Said:
    return Said(name, _TWO.format(condition), _FORM.format(window))


def _rest(name: str, condition: str, window: str) -> Said:
    """Return a condition that a window only surrounds, so that it is checked as well."""
    return Said(name, _COMMA.format(condition), _FORM.format(window) + f" AND {condition}")


SPARK = (
    _two("spark interval join", "C.ts BETWEEN I.ts AND I.ts + INTERVAL 10 MINUTES", _MINUTES),
    _two("spark guide", "C.ts >= I.ts AND C.ts <= I.ts + interval 1 hour", "0 SECONDS AND 1 HOUR"),
    _two("strict bounds", "C.ts > I.ts AND C.ts < I.ts + INTERVAL 2 SECONDS", "1 us AND 1999999 us"),
    _two("half open", "C.ts >= I.ts AND C.ts < I.ts + INTERVAL 2 SECONDS", "0 s AND 1999999 us"),
    _two("turned", "I.ts <= C.ts AND I.ts + INTERVAL 90 SECONDS >= C.ts", "0 SECONDS AND 90 SECONDS"),
    _two(
        "both directions",
        "I.ts BETWEEN C.ts - INTERVAL 5 SECONDS AND C.ts + INTERVAL 3 SECONDS",
        "-3 s AND 5 s",
    ),
    _two("difference", "C.ts - I.ts BETWEEN INTERVAL 1 SECOND AND INTERVAL 1 MINUTE", "1 s AND 1 MINUTE"),
    _two("abs of a difference", "abs(C.ts - I.ts) <= INTERVAL 2 SECONDS", "-2 s AND 2 s"),
    _two("unix_micros", "unix_micros(C.ts) - unix_micros(I.ts) BETWEEN 0 AND 2000000", "0 s AND 2 s"),
    _two(
        "abs of unix_micros",
        "abs(unix_micros(C.ts) - unix_micros(I.ts)) < 2000000",
        "-1999999 us AND 1999999 us",
    ),
    _two("timestampdiff", "timestampdiff(SECOND, I.ts, C.ts) BETWEEN 0 AND 2", "-999999 us AND 2999999 us"),
    _two("abs of timestampdiff", "abs(timestampdiff(SECOND, I.ts, C.ts)) <= 5", "-5999999 us AND 5999999 us"),
    _rest(
        "one minute of the clock",
        "date_trunc('minute', I.ts) = date_trunc('minute', C.ts)",
        "-59999999 us AND 59999999 us",
    ),
    _rest("since the second began", "C.ts BETWEEN date_trunc('second', I.ts) AND I.ts", "-999999 us AND 0 s"),
    _two("timestampdiff above", "timestampdiff(SECOND, I.ts, C.ts) BETWEEN 1 AND 2", "1 s AND 2999999 us"),
    _two("date_diff", "date_diff(MILLISECOND, I.ts, C.ts) BETWEEN 500 AND 2500", "500 ms AND 2500999 us"),
    _two("timestampadd", "C.ts >= I.ts AND C.ts <= timestampadd(SECOND, 2, I.ts)", "0 s AND 2 s"),
    _two(
        "dateadd",
        "C.ts BETWEEN dateadd(MINUTE, -1, I.ts) AND dateadd(MINUTE, 1, I.ts)",
        "-1 MINUTE AND 1 MINUTE",
    ),
    _two("negation", "NOT C.ts < I.ts AND NOT (C.ts > I.ts + INTERVAL 2 SECONDS)", "0 s AND 2 s"),
    _two("two units", "C.ts BETWEEN I.ts AND I.ts + INTERVAL 1 MINUTE 30 SECONDS", "0 s AND 90 s"),
    _two("a day", "C.ts BETWEEN I.ts AND I.ts + INTERVAL 1 DAY", "0 s AND 1 DAY"),
    _two("equal times", "C.ts = I.ts", "0 s AND 0 s"),
    _rest(
        "unix_seconds", "unix_seconds(C.ts) - unix_seconds(I.ts) BETWEEN 0 AND 2", "-999999 us AND 2999999 us"
    ),
    _rest(
        "unix_timestamp",
        "unix_timestamp(C.ts) - unix_timestamp(I.ts) BETWEEN 0 AND 2",
        "-999999 us AND 2999999 us",
    ),
    _rest("cast to long", "abs(CAST(C.ts AS LONG) - CAST(I.ts AS LONG)) <= 2", "-2999999 us AND 2999999 us"),
    _rest("unix_millis", "(unix_millis(C.ts) - unix_millis(I.ts)) / 1000 BETWEEN 0 AND 2", "-2 s AND 4 s"),
    _rest("datediff of days", "abs(datediff(C.ts, I.ts)) <= 0", "-1 DAY AND 1 DAY"),
    _rest(
        "alternatives",
        "((C.ts BETWEEN I.ts AND I.ts + INTERVAL 1 SECOND) OR "
        "(I.ts BETWEEN C.ts AND C.ts + INTERVAL 3 SECONDS))",
        "-3 s AND 1 s",
    ),
    _rest(
        "an equality of columns",
        "C.ts >= I.ts AND C.ts <= I.ts + INTERVAL 2 SECONDS AND I.n < C.n",
        "0 s AND 2 s",
    ),
    Said(
        "comma and WHERE",
        _COMMA.format("C.ts BETWEEN I.ts AND I.ts + INTERVAL 10 MINUTES"),
        _FORM.format(_MINUTES),
    ),
    Said(
        "three streams, one pair derived",
        "SELECT I.n, C.n AS m, P.n AS o FROM imp I JOIN clk C ON I.id = C.id AND C.ts BETWEEN I.ts AND "
        "I.ts + INTERVAL 3 SECONDS JOIN buy P ON P.id = C.id AND P.ts BETWEEN C.ts AND "
        "C.ts + INTERVAL 2 SECONDS",
        "SELECT I.n, C.n AS m, P.n AS o FROM imp I, clk C, buy P WINDOW (I, C) BETWEEN 0 s AND 3 s AND "
        "WINDOW (C, P) BETWEEN 0 s AND 2 s WHERE I.id = C.id AND P.id = C.id",
    ),
    Said(
        "three streams, closed by a chain",
        "SELECT I.n, C.n AS m, P.n AS o FROM imp I, clk C, buy P WHERE I.id = C.id AND P.id = C.id AND "
        "I.ts <= C.ts AND C.ts <= P.ts AND P.ts <= I.ts + INTERVAL 3 SECONDS",
        "SELECT I.n, C.n AS m, P.n AS o FROM imp I, clk C, buy P WINDOW (I, C) BETWEEN 0 s AND 3 s AND "
        "WINDOW (C, P) BETWEEN 0 s AND 3 s AND WINDOW (I, P) BETWEEN 0 s AND 3 s "
        "WHERE I.id = C.id AND P.id = C.id",
    ),
    Said(
        "LEFT JOIN of Spark's guide",
        _LEFT.format(" AND C.ts >= I.ts AND C.ts <= I.ts + INTERVAL 2 SECONDS"),
        _LEFT.format(" WINDOW (I, C) BETWEEN 0 s AND 2 s"),
    ),
    Said(
        "LEFT JOIN with WHERE",
        _LEFT.format(
            " AND C.ts BETWEEN I.ts AND I.ts + INTERVAL 2 SECONDS WHERE C.ts IS NULL OR C.ts > I.ts"
        ),
        _LEFT.format(" WINDOW (I, C) BETWEEN 0 s AND 2 s WHERE C.ts IS NULL OR C.ts > I.ts"),
    ),
    Said(
        "LEFT ANTI JOIN",
        "SELECT I.n FROM imp I LEFT ANTI JOIN clk C ON I.id = C.id "
        "AND abs(timestampdiff(SECOND, I.ts, C.ts)) <= 1",
        "SELECT I.n FROM imp I LEFT ANTI JOIN clk C ON I.id = C.id "
        "WINDOW (I, C) BETWEEN -1999999 us AND 1999999 us",
    ),
    Said(
        "NOT EXISTS",
        "SELECT I.n FROM imp I WHERE NOT EXISTS (SELECT 1 FROM clk C WHERE I.id = C.id AND "
        "C.ts BETWEEN I.ts AND I.ts + INTERVAL 1 SECOND)",
        "SELECT I.n FROM imp I WHERE NOT EXISTS (SELECT 1 FROM clk C WINDOW (I, C) BETWEEN 0 s AND 1 s "
        "WHERE I.id = C.id)",
    ),
    Said(
        "EXISTS beside a join",
        "SELECT I.n, C.n AS m FROM imp I JOIN clk C ON I.id = C.id AND C.ts - I.ts BETWEEN "
        "INTERVAL 0 SECONDS AND INTERVAL 2 SECONDS WHERE EXISTS (SELECT * FROM buy P "
        "WHERE P.id = C.id AND P.ts = C.ts)",
        "SELECT I.n, C.n AS m FROM imp I JOIN clk C ON I.id = C.id WINDOW (I, C) BETWEEN 0 s AND 2 s "
        "WHERE EXISTS (SELECT * FROM buy P WINDOW (C, P) = 0 s WHERE P.id = C.id)",
    ),
    Said(
        "a subquery and an aggregate",
        "SELECT id, count(*) FROM (SELECT I.id FROM imp I JOIN clk C ON I.id = C.id AND "
        "C.ts BETWEEN I.ts AND I.ts + INTERVAL 10 SECONDS) GROUP BY id",
        "SELECT id, count(*) FROM (SELECT I.id FROM imp I, clk C WINDOW (I, C) BETWEEN 0 s AND 10 s "
        "WHERE I.id = C.id) GROUP BY id",
    ),
    Said(
        "a common table",
        "WITH late AS (SELECT * FROM clk WHERE n > 10) SELECT I.n, C.n AS m FROM imp I JOIN late C ON "
        "I.id = C.id AND C.ts BETWEEN I.ts AND I.ts + INTERVAL 10 SECONDS",
        "WITH late AS (SELECT * FROM clk WHERE n > 10) SELECT I.n, C.n AS m FROM imp I, late C "
        "WINDOW (I, C) BETWEEN 0 s AND 10 s WHERE I.id = C.id",
    ),
)

FLINK = (
    Said(
        "flink interval join",
        _COMMA.format("I.ts BETWEEN C.ts - INTERVAL '4' SECOND AND C.ts"),
        _FORM.format("0 s AND 4 s"),
    ),
    _two(
        "flink INTERVAL TO", "C.ts BETWEEN I.ts AND I.ts + INTERVAL '1:30' MINUTE TO SECOND", "0 s AND 90 s"
    ),
    _two("flink TIMESTAMPDIFF", "ABS(TIMESTAMPDIFF(MINUTE, I.ts, C.ts)) < 1", "-59999999 us AND 59999999 us"),
    Said(
        "flink on TIMESTAMP without a zone",
        _NTZ.format("C.ts BETWEEN I.ts - INTERVAL '1' SECOND AND I.ts + INTERVAL '2' DAY"),
        _NTZ_FORM.format("-1 s AND 2 DAYS"),
    ),
    Said(
        "flink difference on TIMESTAMP without a zone",
        _NTZ.format("C.ts - I.ts < INTERVAL '3' SECOND AND C.ts >= I.ts"),
        _NTZ_FORM.format("0 s AND 2999999 us"),
    ),
    Said("whole numbers", _WHOLE.format("B.t BETWEEN A.t AND A.t + 5"), _WHOLE_FORM.format("0 AND 5")),
    Said(
        "whole numbers, strict", _WHOLE.format("A.t < B.t AND B.t - A.t < 5"), _WHOLE_FORM.format("1 AND 4")
    ),
    Said("whole numbers, abs", _WHOLE.format("abs(A.t - B.t) <= 2.5"), _WHOLE_FORM.format("-2 AND 2")),
)

KSQLDB = (
    Said(
        "ksqldb WITHIN",
        "SELECT I.n, C.n AS m FROM imp I JOIN clk C WITHIN 2 SECONDS ON I.id = C.id",
        _FORM.format("-2 s AND 2 s"),
        sparks=False,
    ),
    Said(
        "ksqldb WITHIN before and after",
        "SELECT I.n, C.n AS m FROM imp I INNER JOIN clk C WITHIN (1 SECOND, 3 SECONDS) ON I.id = C.id",
        _FORM.format("-1 s AND 3 s"),
        sparks=False,
    ),
    Said(
        "ksqldb LEFT JOIN",
        "SELECT I.n, C.n AS m FROM imp I LEFT JOIN clk C WITHIN 2 SECONDS ON I.id = C.id",
        _LEFT.format(" WINDOW (I, C) = 2 SECONDS"),
        sparks=False,
    ),
)

AZURE = (
    _two("azure DATEDIFF", "DATEDIFF(second, I.ts, C.ts) BETWEEN 0 AND 10", "-999999 us AND 10999999 us"),
)

STATEMENTS = (*SPARK, *FLINK, *KSQLDB, *AZURE)

OF_THREE = Said(
    "ksqldb WITHIN of three",
    "SELECT I.n, C.n AS m, B.n AS o FROM imp I JOIN clk C WITHIN 2 SECONDS ON I.id = C.id "
    "JOIN buy B WITHIN (1 SECOND, 3 SECONDS) ON B.id = C.id",
    "SELECT I.n, C.n AS m, B.n AS o FROM imp I, clk C, buy B WINDOW (I, C) = 2 SECONDS "
    "AND WINDOW (I, B) BETWEEN -1 SECOND AND 5 SECONDS AND WINDOW (C, B) BETWEEN -1 SECOND AND 5 SECONDS "
    "WHERE I.id = C.id AND B.id = C.id AND unix_micros(B.ts) - "
    "greatest(unix_micros(I.ts), unix_micros(C.ts)) BETWEEN -1000000 AND 3000000",
    sparks=False,
)
"""The second of its forms says by a condition what the first says by windows."""
