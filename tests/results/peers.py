"""What the tests of Spark, Flink and ksqlDB ask of joins of streams, as statements in their words over "
"rows of our own.

Their subjects are those of Spark's suite of joins of two streams, of Flink's tests of interval joins, and of
ksqlDB's tests of joins with WITHIN. ``sent``, ``seen`` and ``paid`` are streams, ``names`` is a table.
"""

from typing import NamedTuple

Row = tuple[str | None, float, int, str]
"""A key, an event time in seconds, a number and a name."""

SENT: tuple[Row, ...] = (
    *(("x", 0.999, 4, "s0"), ("x", 1, 9, "s1"), ("x", 2, 2, "s2"), ("y", 3.5, 6, "s3")),
    *(("x", 6, 4, "s4"), (None, 8, 1, "s5"), ("z", 9, 3, "s6"), ("x", 12, 7, "s7")),
    *(("x", 12, 7, "s8"), ("y", 12.000001, 5, "s9"), ("x", 40, 8, "s10")),
)
SEEN: tuple[Row, ...] = (
    *(("x", 5, 3, "r0"), ("x", 6, 9, "r1"), ("y", 7, 8, "r2"), ("w", 8, 5, "r3")),
    *((None, 9, 1, "r4"), ("x", 11, 2, "r5"), ("x", 12, 7, "r6"), ("y", 18, 6, "r7"), ("x", 90, 1, "r8")),
)
PAID: tuple[Row, ...] = (
    *(("x", 4, 1, "p0"), ("y", 8, 2, "p1"), (None, 9, 6, "p5"), ("x", 13, 3, "p2"), ("x", 20, 4, "p3")),
    *(("z", 21, 5, "p4"), ("w", 60, 7, "p6")),
)


class Pasted(NamedTuple):
    """A statement in a peer's words, and DuckDB's of the same meaning over tables with times in microseconds.

    ``ours``: whether it is a window join, not one that is left to Spark.
    """

    name: str
    words: str
    oracle: str
    ours: bool = True


_PAIR = "SELECT a.id, b.id FROM sent a {} JOIN seen b ON {}"
_BOTH_ENDS = "b.us - a.us BETWEEN -6000000 AND 5000000"
_KEY = "a.k = b.k AND "

_FLINK = "SELECT t1.id, t2.id FROM sent AS t1 {} JOIN seen AS t2 ON {}"
_INTERVAL = "t1.ts BETWEEN t2.ts - INTERVAL '5' SECOND AND t2.ts + INTERVAL '6' SECOND"
_EMPTY = "t1.ts BETWEEN t2.ts + INTERVAL '3' SECOND AND t2.ts + INTERVAL '1' SECOND"

FLINK = (
    Pasted(
        "flink: both ends of the interval",
        _FLINK.format("", f"t1.k = t2.k AND {_INTERVAL}"),
        _PAIR.format("", _KEY + _BOTH_ENDS),
    ),
    Pasted(
        "flink: NULL is not distinct from NULL",
        _FLINK.format("", f"t1.k IS NOT DISTINCT FROM t2.k AND {_INTERVAL}"),
        _PAIR.format("", f"a.k IS NOT DISTINCT FROM b.k AND {_BOTH_ENDS}"),
    ),
    Pasted("flink: no equality", _FLINK.format("", _INTERVAL), _PAIR.format("", _BOTH_ENDS)),
    Pasted(
        "flink: a second equality",
        _FLINK.format("", f"t1.k = t2.k AND {_INTERVAL} AND t1.n = t2.n"),
        _PAIR.format("", f"{_KEY}a.n = b.n AND {_BOTH_ENDS}"),
    ),
    Pasted(
        "flink: an aggregate without windows",
        f"SELECT k, COUNT(DISTINCT id1), COUNT(DISTINCT id2) FROM (SELECT t2.k AS k, t2.id AS id1, t1.id "
        f"AS id2 "
        f"FROM sent AS t1 JOIN seen AS t2 ON t1.k = t2.k AND {_INTERVAL}) GROUP BY k",
        f"SELECT b.k, count(DISTINCT b.id), count(DISTINCT a.id) FROM sent a JOIN seen b ON "
        f"{_KEY}{_BOTH_ENDS} "
        "GROUP BY b.k",
    ),
    Pasted(
        "flink: equal times",
        "SELECT t1.k, t1.id, t2.id FROM sent AS t1 JOIN seen AS t2 ON t1.k = t2.k AND t2.ts = t1.ts",
        "SELECT a.k, a.id, b.id FROM sent a JOIN seen b ON a.k = b.k AND a.us = b.us",
    ),
    Pasted(
        "flink: strict ends and other conditions",
        _FLINK.format(
            "",
            "t1.k = t2.k AND t1.ts > t2.ts - INTERVAL '5' SECOND AND t1.ts < t2.ts - INTERVAL '1' SECOND "
            "AND t1.n < t2.n AND t1.n > 2",
        ),
        _PAIR.format("", f"{_KEY}b.us - a.us < 5000000 AND b.us - a.us > 1000000 AND a.n < b.n AND a.n > 2"),
    ),
    Pasted(
        "flink: a function of a time",
        _FLINK.format(
            "",
            "t1.k = t2.k AND t1.ts > t2.ts - INTERVAL '4' SECOND AND t1.ts < t2.ts AND QUARTER(t1.ts) + 6 "
            "= t2.n",
        ),
        _PAIR.format("", f"{_KEY}b.us - a.us BETWEEN 1 AND 3999999 AND b.n = 8"),
    ),
    Pasted(
        "flink: groups by windows of the first time",
        f"SELECT t1.k, unix_seconds(window(t1.ts, '4 SECONDS').end), COUNT(t2.k) FROM sent AS t1 JOIN seen "
        f"AS t2 "
        f"ON t1.k = t2.k AND {_INTERVAL} GROUP BY window(t1.ts, '4 SECONDS'), t1.k",
        f"SELECT a.k, (a.us // 4000000 + 1) * 4, count(b.k) FROM sent a JOIN seen b ON {_KEY}{_BOTH_ENDS} "
        "GROUP BY a.us // 4000000, a.k",
    ),
    Pasted(
        "flink: groups by windows of the second time",
        f"SELECT t2.k, unix_seconds(window(t2.ts, '4 SECONDS').end), COUNT(t1.k) FROM sent AS t1 JOIN seen "
        f"AS t2 "
        f"ON t1.k = t2.k AND {_INTERVAL} GROUP BY window(t2.ts, '4 SECONDS'), t2.k",
        f"SELECT b.k, (b.us // 4000000 + 1) * 4, count(a.k) FROM sent a JOIN seen b ON {_KEY}{_BOTH_ENDS} "
        "GROUP BY b.us // 4000000, b.k",
    ),
    Pasted(
        "flink: LEFT, with a condition on the first",
        _FLINK.format("LEFT OUTER", f"t1.k = t2.k AND {_INTERVAL} AND t1.id <> 's4'"),
        _PAIR.format("LEFT", f"{_KEY}{_BOTH_ENDS} AND a.id <> 's4'"),
    ),
    Pasted(
        "flink: RIGHT, with a condition on the second",
        _FLINK.format("RIGHT OUTER", f"t1.k = t2.k AND {_INTERVAL} AND t2.id <> 'r1'"),
        _PAIR.format("RIGHT", f"{_KEY}{_BOTH_ENDS} AND b.id <> 'r1'"),
    ),
    Pasted(
        "flink: FULL, with a condition on both",
        _FLINK.format("FULL OUTER", f"t1.k = t2.k AND {_INTERVAL} AND NOT (t1.id = 's4' OR t2.id = 'r1')"),
        _PAIR.format("FULL", f"{_KEY}{_BOTH_ENDS} AND NOT (a.id = 's4' OR b.id = 'r1')"),
    ),
    *(
        Pasted(
            f"flink: {kind} of an empty interval",
            _FLINK.format(f"{kind} OUTER", f"t1.k = t2.k AND {_EMPTY}"),
            _PAIR.format(kind, "false"),
        )
        for kind in ("LEFT", "RIGHT", "FULL")
    ),
    Pasted(
        "flink: the time at which a micro-batch reads a row",
        "SELECT DISTINCT t1.id, t2.id FROM "
        "(SELECT *, current_timestamp() AS proctime FROM sent) WATERMARK proctime DELAY OF INTERVAL 0 "
        "SECONDS AS t1 "
        "JOIN (SELECT *, current_timestamp() AS proctime FROM seen) WATERMARK proctime DELAY OF INTERVAL 0 "
        "SECONDS "
        "AS t2 ON t1.k = t2.k AND "
        "t1.proctime BETWEEN t2.proctime - INTERVAL '5' SECOND AND t2.proctime + INTERVAL '5' SECOND",
        "SELECT a.id, b.id FROM sent a JOIN seen b ON a.k = b.k",
    ),
)

_LEFT_TIMES = "SELECT k AS leftKey, ts AS leftTime, n AS leftValue, id AS leftId FROM sent"
_RIGHT_TIMES = "SELECT k AS rightKey, ts AS rightTime, n * 3 AS rightValue, id AS rightId FROM seen"
_SPARK = (
    f"SELECT leftId, rightId FROM ({_LEFT_TIMES}) L {{}} JOIN ({_RIGHT_TIMES}) R "
    "ON leftKey = rightKey AND {}"
)
_NEAR = "leftTime BETWEEN rightTime - interval '0:05' minute to second AND rightTime + interval 5 seconds"
_SELF = (
    "SELECT {} FROM (SELECT id AS leftId, k AS leftKey, ts AS leftTime FROM sent) L {} JOIN (SELECT id AS "
    "rightId, "
    "k AS rightKey, ts AS rightTime FROM sent WHERE n % 2 = 0) R ON leftKey = rightKey AND rightTime >= "
    "leftTime "
    "AND rightTime <= leftTime + interval 5 seconds"
)
_SELF_ORACLE = (
    "SELECT {} FROM sent a {} JOIN (SELECT * FROM sent WHERE n % 2 = 0) b "
    "ON a.k = b.k AND b.us - a.us BETWEEN 0 AND 5000000"
)
_TEN = "(SELECT k, window(ts, '10 seconds') AS w, n, id FROM {})"
_WINDOWED = (
    f"SELECT L.id, R.id FROM {_TEN.format('sent')} L {{}} JOIN {_TEN.format('seen')} R "
    "ON L.k = R.k AND L.w = R.w"
)
_KINDS = ("INNER", "LEFT", "RIGHT", "FULL")

SPARK = (
    *(
        Pasted(
            f"spark: {kind} with a range of time",
            _SPARK.format(kind, _NEAR),
            _PAIR.format(kind, f"{_KEY}abs(b.us - a.us) <= 5000000"),
        )
        for kind in _KINDS
    ),
    Pasted(
        "spark: LEFT SEMI with a range of time",
        _SPARK.format("LEFT SEMI", _NEAR).replace("leftId, rightId", "leftId"),
        f"SELECT a.id FROM sent a WHERE EXISTS (FROM seen b WHERE {_KEY}abs(b.us - a.us) <= 5000000)",
    ),
    *(
        Pasted(
            f"spark: {kind} with a condition on the {side}",
            _SPARK.format(kind, f"{_NEAR} AND {condition}"),
            _PAIR.format(kind, f"{_KEY}abs(b.us - a.us) <= 5000000 AND {meant}"),
        )
        for kind in _KINDS[1:]
        for side, condition, meant in (
            ("first", "leftValue > 4", "a.n > 4"),
            ("second", "CAST(CAST(rightValue AS STRING) AS INT) > 7", "b.n * 3 > 7"),
            (
                "result",
                "leftValue > 4 AND (rightValue < 9 OR rightValue > 20)",
                "a.n > 4 AND b.n NOT BETWEEN 3 AND 6",
            ),
        )
    ),
    *(
        Pasted(
            f"spark: {kind} of a stream with itself",
            _SELF.format("leftId, rightId", kind),
            _SELF_ORACLE.format("a.id, b.id", kind),
        )
        for kind in _KINDS
    ),
    Pasted(
        "spark: LEFT SEMI of a stream with itself",
        _SELF.format("leftId", "LEFT SEMI"),
        _SELF_ORACLE.format("a.id", "SEMI"),
    ),
    Pasted(
        "spark: a key that may be NULL",
        _SPARK.format("", _NEAR).replace("leftKey = rightKey", "leftKey <=> rightKey"),
        _PAIR.format("", "a.k IS NOT DISTINCT FROM b.k AND abs(b.us - a.us) <= 5000000"),
    ),
    Pasted(
        "spark: LEFT with a key that may be NULL",
        _SPARK.format("LEFT", _NEAR).replace("leftKey = rightKey", "leftKey <=> rightKey"),
        _PAIR.format("LEFT", "a.k IS NOT DISTINCT FROM b.k AND abs(b.us - a.us) <= 5000000"),
    ),
    Pasted(
        "spark: no equality, which Spark does not join",
        "SELECT a.id, b.id FROM sent a JOIN seen b ON a.n < b.n AND abs(timestampdiff(SECOND, a.ts, b.ts)) "
        "< 3",
        _PAIR.format("", "a.n < b.n AND abs(b.us - a.us) < 3000000"),
    ),
    Pasted(
        "spark: three streams",
        "SELECT a.id, b.id, c.id FROM sent a JOIN seen b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + "
        "interval 9 "
        "seconds JOIN paid c ON c.k = b.k AND c.ts BETWEEN b.ts AND b.ts + interval 8 seconds",
        "SELECT a.id, b.id, c.id FROM sent a JOIN seen b ON a.k = b.k AND b.us - a.us BETWEEN 0 AND 9000000 "
        "JOIN paid c ON c.k = b.k AND c.us - b.us BETWEEN 0 AND 8000000",
    ),
    Pasted(
        "spark: beside a stream in a UNION",
        "SELECT id, n FROM paid UNION ALL SELECT a.id, b.n FROM sent a JOIN seen b ON a.k = b.k AND a.ts = "
        "b.ts",
        "SELECT id, n FROM paid UNION ALL SELECT a.id, b.n FROM sent a JOIN seen b ON a.k = b.k AND a.us = "
        "b.us",
    ),
    *(
        Pasted(
            f"spark: {kind} of windows of ten seconds",
            _WINDOWED.format(kind),
            _PAIR.format(kind, f"{_KEY}a.us // 10000000 = b.us // 10000000"),
            ours=False,
        )
        for kind in ("INNER", "LEFT")
    ),
    Pasted(
        "spark: windows of ten seconds, with the window clause",
        _WINDOWED.format("").replace("SELECT k, window", "SELECT k, ts, window")
        + " WINDOW (L, R) = 10 SECONDS",
        _PAIR.format("", f"{_KEY}a.us // 10000000 = b.us // 10000000"),
    ),
)

_KSQL = "SELECT {} FROM sent l {} JOIN seen r WITHIN {} ON {}"
_TEN_SECONDS = "abs(b.us - a.us) <= 10000000"


def _keyed(name: str, on: str, meant: str, within: str = "30 SECONDS") -> Pasted:
    """Return a join of ksqlDB's whose subject is what is compared."""
    width = 30_000_000 if within == "30 SECONDS" else 10_000_000
    oracle = _PAIR.format("", f"{meant} AND abs(b.us - a.us) <= {width}")
    return Pasted(f"ksqldb: {name}", _KSQL.format("l.id, r.id", "INNER", within, on), oracle)


KSQLDB = (
    *(
        Pasted(
            f"ksqldb: {kind} of all columns",
            f"SELECT * FROM (SELECT k, n, id, ts FROM sent) l {kind} JOIN (SELECT k, n, id, ts FROM seen) r "
            "WITHIN 10 SECONDS ON l.k = r.k",
            f"SELECT a.k, a.n, a.id, make_timestamptz(a.us), b.k, b.n, b.id, make_timestamptz(b.us) FROM "
            f"sent a {kind} "
            f"JOIN seen b ON {_KEY}{_TEN_SECONDS}",
        )
        for kind in ("INNER", "LEFT", "RIGHT", "FULL OUTER")
    ),
    Pasted(
        "ksqldb: all columns of one, some of the other, and WHERE",
        "SELECT l.*, r.id FROM (SELECT k, n, ts FROM sent) L INNER JOIN seen R WITHIN 11 seconds ON L.k = "
        "R.k "
        "WHERE R.n < 5",
        "SELECT a.k, a.n, make_timestamptz(a.us), b.id FROM sent a JOIN seen b ON a.k = b.k "
        "AND abs(b.us - a.us) <= 11000000 WHERE b.n < 5",
    ),
    Pasted(
        "ksqldb: names without aliases",
        "SELECT sent.k, sent.id, seen.id FROM sent LEFT OUTER JOIN seen WITHIN 10 SECONDS ON sent.k = seen.k",
        f"SELECT a.k, a.id, b.id FROM sent a LEFT JOIN seen b ON {_KEY}{_TEN_SECONDS}",
    ),
    Pasted(
        "ksqldb: columns without the names of their streams",
        "SELECT left_id, right_id FROM (SELECT id AS left_id, k AS lk, ts FROM sent) t LEFT JOIN "
        "(SELECT id AS right_id, k AS rk, ts FROM seen) tt WITHIN 11 seconds ON lk = rk",
        _PAIR.format("LEFT", f"{_KEY}abs(b.us - a.us) <= 11000000"),
    ),
    Pasted(
        "ksqldb: before and after",
        _KSQL.format("l.id, r.id", "", "(1 SECOND, 6 SECONDS)", "l.k = r.k"),
        _PAIR.format("", f"{_KEY}b.us - a.us BETWEEN -1000000 AND 6000000"),
    ),
    Pasted(
        "ksqldb: a condition between the streams in WHERE",
        _KSQL.format("l.id, r.id", "", "1 minute", "l.k = r.k WHERE l.n < r.n"),
        _PAIR.format("", f"{_KEY}abs(b.us - a.us) <= 60000000 AND a.n < b.n"),
    ),
    Pasted(
        "ksqldb: more than one condition, which ksqlDB does not take",
        _KSQL.format("l.id, r.id", "", "10 SECONDS", "l.k = r.k AND l.n <> r.n"),
        _PAIR.format("", f"{_KEY}{_TEN_SECONDS} AND a.n <> b.n"),
    ),
    Pasted(
        "ksqldb: a stream with itself, which ksqlDB does not take",
        "SELECT s1.id, s2.id FROM sent s1 JOIN sent s2 WITHIN 3 SECONDS ON s1.k = s2.k",
        "SELECT a.id, b.id FROM sent a JOIN sent b ON a.k = b.k AND abs(b.us - a.us) <= 3000000",
    ),
    _keyed("abs of both", "ABS(L.n - 5) = ABS(R.n - 5)", "abs(a.n - 5) = abs(b.n - 5)", "10 SECONDS"),
    _keyed("abs of one", "L.n = ABS(R.n - 9)", "a.n = abs(b.n - 9)"),
    _keyed(
        "part of a string",
        "SUBSTRING(l.id, 2) = SUBSTRING(r.id, 2)",
        "substring(a.id, 2) = substring(b.id, 2)",
    ),
    _keyed("a cast", "l.n = CAST(substring(r.id, 2) AS BIGINT)", "a.n = CAST(substring(b.id, 2) AS BIGINT)"),
    _keyed("a cast of a fraction", "l.n = CAST(r.n / 2 AS INT)", "a.n = trunc(b.n / 2)"),
    _keyed("a sum", "l.n = r.n + 1", "a.n = b.n + 1"),
    _keyed("a sign", "-r.n = l.n - 9", "-b.n = a.n - 9"),
    _keyed(
        "CASE", "l.n = (CASE WHEN r.n = 2 THEN 4 ELSE 9 END)", "a.n = CASE WHEN b.n = 2 THEN 4 ELSE 9 END"
    ),
    _keyed("an element, counted from 0 here", "l.id = r.tags[0]", "a.id = 's' || b.n"),
    _keyed("a field of a struct", "l.st.c = r.st.c", "a.n = b.n"),
    Pasted(
        "ksqldb: three streams, each with a width",
        "SELECT s1.id, s2.id, s3.id FROM sent s1 JOIN seen s2 WITHIN 5 seconds ON s1.k = s2.k "
        "JOIN paid s3 WITHIN 10 seconds ON s1.k = s3.k",
        "SELECT a.id, b.id, c.id FROM sent a JOIN seen b ON a.k = b.k AND abs(b.us - a.us) <= 5000000 "
        "JOIN paid c ON a.k = c.k AND abs(c.us - greatest(a.us, b.us)) <= 10000000",
    ),
    Pasted(
        "ksqldb: three streams by other keys",
        "SELECT s1.id, s2.id, s3.id FROM sent s1 JOIN seen s2 WITHIN 10 seconds ON s1.n = abs(s2.n) "
        "JOIN paid s3 WITHIN 10 seconds ON abs(s2.n) = abs(s3.n) WHERE s1.n < 9",
        f"SELECT a.id, b.id, c.id FROM sent a JOIN seen b ON a.n = b.n AND {_TEN_SECONDS} "
        "JOIN paid c ON b.n = c.n AND abs(c.us - greatest(a.us, b.us)) <= 10000000 WHERE a.n < 9",
    ),
    *(
        Pasted(
            f"ksqldb: {kind or 'inner'} join of two streams, then a table",
            f"SELECT s1.id, s2.id, t.word FROM sent s1 {kind} JOIN seen s2 WITHIN 10 seconds ON s1.k = s2.k "
            "JOIN names t ON s1.k = t.k",
            f"SELECT a.id, b.id, t.word FROM sent a {kind} JOIN seen b ON {_KEY}{_TEN_SECONDS} JOIN names "
            f"t ON a.k = t.k",
        )
        for kind in ("", "LEFT", "FULL")
    ),
    Pasted(
        "ksqldb: a table between two streams, with the line that the error says",
        "SELECT s1.id, s2.id, t.word FROM sent s1 LEFT JOIN names t ON s1.k = t.k JOIN seen s2 ON s1.k = "
        "s2.k "
        "WINDOW (s1, s2) = 10 seconds",
        f"SELECT a.id, b.id, t.word FROM sent a LEFT JOIN names t ON a.k = t.k JOIN seen b ON "
        f"{_KEY}{_TEN_SECONDS}",
    ),
    Pasted(
        "ksqldb: two left joins, with the line that the error says",
        "SELECT s1.id, s2.id, s3.id FROM sent s1 LEFT JOIN seen s2 WITHIN 5 SECONDS ON s1.k = s2.k "
        "LEFT JOIN paid s3 ON s1.k = s3.k WINDOW (s1, s3) = 10 SECONDS",
        "SELECT a.id, b.id, c.id FROM sent a LEFT JOIN seen b ON a.k = b.k AND abs(b.us - a.us) <= 5000000 "
        "LEFT JOIN paid c ON a.k = c.k AND abs(c.us - a.us) <= 10000000",
    ),
    Pasted(
        "ksqldb: the time of a result",
        _KSQL.format("l.id, r.id, unix_micros(MATCH_TIME())", "", "11 SECONDS", "l.k = r.k"),
        "SELECT a.id, b.id, greatest(a.us, b.us) FROM sent a JOIN seen b ON a.k = b.k "
        "AND abs(b.us - a.us) <= 11000000",
    ),
)

PASTED = (*SPARK, *FLINK, *KSQLDB)

_OF_KEYS = "SELECT t1.id FROM sent t1 JOIN seen t2 ON t1.k = t2.k"

REFUSED = {
    "spark: bounded on one side": (
        f"{_OF_KEYS} AND t1.ts < t2.ts - interval 5 seconds",
        "add AND t2.ts <= t1.ts + INTERVAL 10 MINUTES",
    ),
    "flink: an empty interval of an inner join": (
        _FLINK.format("", f"t1.k = t2.k AND {_EMPTY}"),
        "widen one window",
    ),
    "flink: the time that it is": (
        f"{_OF_KEYS} AND t1.proctime BETWEEN t2.proctime - INTERVAL '5' SECOND AND t2.proctime",
        "proctime AS current_timestamp()",
    ),
    "flink: TUMBLE": (
        f"SELECT t1.k, COUNT(*) FROM sent AS t1 JOIN seen AS t2 ON t1.k = t2.k AND {_INTERVAL} "
        "GROUP BY TUMBLE(t1.ts, INTERVAL '4' SECOND), t1.k",
        "write window(time, '4 SECONDS')",
    ),
    "flink: a table with a watermark": (
        "CREATE TABLE o (id BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH "
        "('a' = 'b')",
        "write CREATE STREAM, and USING … OPTIONS (…) for WITH (…)",
    ),
    "flink: milliseconds": (
        "CREATE STREAM o (id BIGINT, ts TIMESTAMP(3)) USING json OPTIONS (path 'x')",
        "write TIMESTAMP, or TIMESTAMP_NTZ",
    ),
    "ksqldb: a grace period": (
        _KSQL.format("l.id", "", "1 minute GRACE PERIOD 1 minute", "l.k = r.k"),
        "WATERMARK ts DELAY OF 1 minute",
    ),
    "ksqldb: EMIT CHANGES": (_KSQL.format("l.id", "", "1 minute", "l.k = r.k EMIT CHANGES"), "leave it out"),
    "ksqldb: an arrow": (_KSQL.format("l.id", "", "1 minute", "l.st->c = r.st->c"), "write l.st.c"),
    "ksqldb: ROWTIME": (
        _KSQL.format("l.id, r.ROWTIME", "", "1 minute", "l.k = r.k"),
        "the event time of r is ts",
    ),
    "ksqldb: a stream of a join": (
        f"CREATE STREAM o AS {_KSQL.format('l.id', '', '1 minute', 'l.k = r.k')}",
        "CREATE SINK name USING … and INSERT INTO name SELECT …",
    ),
    "ksqldb: options": (
        "CREATE STREAM o (id INT KEY, v INT) WITH (kafka_topic='o', value_format='JSON')",
        "write USING kafka OPTIONS (kafka.bootstrap.servers 'host:9092', subscribe 'topic') FORMAT JSON",
    ),
    "ksqldb: a table between two streams": (
        "SELECT s1.id FROM sent s1 LEFT JOIN names t ON s1.k = t.k JOIN seen s2 WITHIN 10 seconds ON s1.k "
        "= s2.k",
        "for example WINDOW (s1, s2) = 10 seconds",
    ),
    "ksqldb: two left joins": (
        "SELECT s1.id FROM sent s1 LEFT JOIN seen s2 WITHIN 5 SECONDS ON s1.k = s2.k "
        "LEFT JOIN paid s3 WITHIN 10 SECONDS ON s1.k = s3.k",
        "for example WINDOW (s1, s3) = 10 SECONDS",
    ),
}
"""What cannot pass as it stands, and the line to write that the error says."""
