"""Outer, semi and anti joins among several joins have the rows that DuckDB has, over streams and tables."""

import pytest

from tests.stream.joined import COLUMNS, Streams, assert_as_duckdb, come_after_a_move, end, on_time
from tests.tiers import tiers

AB, AC, BC = (
    "WINDOW (A, B) BETWEEN -2 AND 5",
    "WINDOW (A, C) BETWEEN -1 AND 6",
    "WINDOW (B, C) BETWEEN 0 AND 4",
)
AB_ON, AC_ON, BC_ON = (
    f"{second}.n - {first}.n BETWEEN {low} AND {high}"
    for first, second, low, high in (("A", "B", -2, 5), ("A", "C", -1, 6), ("B", "C", 0, 4))
)

STATEMENTS = {
    # The second LEFT JOIN asks for what the first may not have found.
    "chain": (
        f"""SELECT A.n AS a, A.s, B.n AS b, B.s AS t, C.n AS c, C.s AS u FROM one A
            LEFT JOIN two B ON A.k = B.k LEFT JOIN three C ON B.k = C.k AND B.j = C.j {AB} AND {BC}""",
        f"""SELECT A.n, A.s, B.n, B.s, C.n, C.s FROM one A
            LEFT JOIN two B ON A.k = B.k AND {AB_ON}
            LEFT JOIN three C ON B.k = C.k AND B.j = C.j AND {BC_ON}""",
    ),
    "star": (
        f"""SELECT A.n AS a, B.v, C.s, MATCH_TIME() AS at, MATCH_SPAN() AS wide FROM one A
            LEFT JOIN two B ON A.k = B.k AND A.j = B.j
            LEFT JOIN three C ON A.k = C.k AND A.v > 2 {AB} AND {AC}
            WHERE C.n IS NULL OR B.v IS NULL OR B.v < C.v""",
        f"""SELECT A.n, B.v, C.s, greatest(A.n, B.n, C.n), greatest(A.n, B.n, C.n) - least(A.n, B.n, C.n)
            FROM one A LEFT JOIN two B ON A.k = B.k AND A.j = B.j AND {AB_ON}
            LEFT JOIN three C ON A.k = C.k AND A.v > 2 AND {AC_ON}
            WHERE C.n IS NULL OR B.v IS NULL OR B.v < C.v""",
    ),
    "group": (
        f"""SELECT A.n AS a, B.n AS b, C.n AS c FROM one A, two B
            LEFT JOIN three C ON B.k = C.k AND A.v <= C.v {AB} AND {BC}
            WHERE A.k = B.k AND A.j = B.j AND B.v > 1""",
        f"""SELECT A.n, B.n, C.n FROM (one A JOIN two B ON A.k = B.k AND A.j = B.j AND B.v > 1 AND {AB_ON})
            LEFT JOIN three C ON B.k = C.k AND A.v <= C.v AND {BC_ON}""",
    ),
    "without": (
        f"""SELECT A.n AS a, C.n AS c, A.s FROM one A ANTI JOIN two B ON A.k = B.k AND A.s = B.s
            LEFT JOIN three C ON A.k = C.k {AB} AND {AC}""",
        f"""SELECT A.n, C.n, A.s FROM (SELECT * FROM one A WHERE NOT EXISTS
            (SELECT * FROM two B WHERE A.k = B.k AND A.s = B.s AND {AB_ON})) A
            LEFT JOIN three C ON A.k = C.k AND {AC_ON}""",
    ),
    "inner after": (
        f"""SELECT A.n AS a, B.s, C.n AS c FROM one A LEFT JOIN two B ON A.k = B.k
            JOIN three C ON B.j = C.j AND B.k = C.k {AB} AND {BC}""",
        f"""SELECT A.n, B.s, C.n FROM one A LEFT JOIN two B ON A.k = B.k AND {AB_ON}
            JOIN three C ON B.j = C.j AND B.k = C.k AND {BC_ON}""",
    ),
    # An inner join that knows nothing of B comes before it.
    "inner first": (
        f"""SELECT A.n AS a, B.s, C.n AS c FROM one A LEFT JOIN two B ON A.k = B.k AND A.j = B.j
            JOIN three C ON A.j = C.j AND A.k = C.k {AB} AND {AC}""",
        f"""SELECT A.n, B.s, C.n FROM one A LEFT JOIN two B ON A.k = B.k AND A.j = B.j AND {AB_ON}
            JOIN three C ON A.j = C.j AND A.k = C.k AND {AC_ON}""",
    ),
    "full": (
        f"""SELECT A.n AS a, B.s, C.s AS u FROM one A FULL JOIN two B ON A.k = B.k
            FULL JOIN three C ON B.k = C.k AND B.j = C.j {AB} AND {BC}""",
        f"""SELECT A.n, B.s, C.s FROM one A FULL JOIN two B ON A.k = B.k AND {AB_ON}
            FULL JOIN three C ON B.k = C.k AND B.j = C.j AND {BC_ON}""",
    ),
    "right": (
        f"""SELECT A.s, B.n AS b, C.n AS c, C.s AS u FROM one A JOIN two B ON A.k = B.k AND A.j = B.j
            RIGHT JOIN three C ON A.k = C.k AND B.v > 3 {AB} AND {AC}""",
        f"""SELECT A.s, B.n, C.n, C.s FROM (one A JOIN two B ON A.k = B.k AND A.j = B.j AND {AB_ON})
            RIGHT JOIN three C ON A.k = C.k AND B.v > 3 AND {AC_ON}""",
    ),
    "some": (
        f"""SELECT A.n AS a, B.n AS b FROM one A LEFT JOIN two B ON A.k = B.k
            SEMI JOIN three C ON A.k = C.k AND A.j = C.j {AB} AND {AC}""",
        f"""SELECT A.n, B.n FROM one A LEFT JOIN two B ON A.k = B.k AND {AB_ON}
            WHERE EXISTS (SELECT * FROM three C WHERE A.k = C.k AND A.j = C.j AND {AC_ON})""",
    ),
    # A, then B, and no C of the key between them.
    "path": (
        """SELECT A.n AS a, B.n AS b, B.s FROM one A, three C, two B PATH (A, NOT C, B) WITHIN (6)
           WHERE A.k = B.k AND A.j = B.j AND A.k = C.k AND C.s <> 'x' AND A.v > 1""",
        """SELECT A.n, B.n, B.s FROM one A, two B WHERE A.k = B.k AND A.j = B.j AND A.v > 1
           AND B.n - A.n BETWEEN 0 AND 6 AND NOT EXISTS
           (SELECT * FROM three C WHERE A.k = C.k AND C.s <> 'x' AND C.n BETWEEN A.n AND B.n)""",
    ),
    "path end": (
        """SELECT A.n AS a, B.n AS b, MATCH_TIME() AS at FROM one A, two B, three C
           PATH (A, B, NOT C) WITHIN (5, 3) WHERE A.k = B.k AND A.j = B.j AND B.k = C.k AND C.v >= A.v""",
        """SELECT A.n, B.n, B.n FROM one A, two B WHERE A.k = B.k AND A.j = B.j
           AND B.n - A.n BETWEEN 0 AND 5 AND NOT EXISTS
           (SELECT * FROM three C WHERE B.k = C.k AND C.v >= A.v AND C.n - B.n BETWEEN 0 AND 3)""",
    ),
    "path of two": (
        "SELECT * FROM one A, two B PATH (A, NOT B) WITHIN (4) WHERE A.k = B.k AND A.j = B.j",
        """SELECT * FROM one A WHERE NOT EXISTS
           (SELECT * FROM two B WHERE A.k = B.k AND A.j = B.j AND B.n - A.n BETWEEN 0 AND 4)""",
    ),
    "path of several": (
        """SELECT A.n AS a, B.n AS b FROM one A JOIN two B ON A.k = B.k AND A.j = B.j, three C, one D
           PATH (A, NOT C, B, NOT D) WITHIN (8, 2)
           WHERE C.k = B.k AND C.j = A.j AND D.k = A.k AND D.s = B.s""",
        """SELECT A.n, B.n FROM one A JOIN two B ON A.k = B.k AND A.j = B.j AND B.n - A.n BETWEEN 0 AND 8
           WHERE NOT EXISTS (SELECT * FROM three C WHERE C.k = B.k AND C.j = A.j AND C.n BETWEEN A.n AND B.n)
           AND NOT EXISTS
           (SELECT * FROM one D WHERE D.k = A.k AND D.s = B.s AND D.n - B.n BETWEEN 0 AND 2)""",
    ),
    # Of each row of A the last one of B, and of that the last one of C.
    "asof": (
        """SELECT A.n AS a, B.n AS b, C.n AS c, C.s AS u FROM one A
           LEFT ASOF JOIN two B MATCH_CONDITION (A.n >= B.n) ON A.k = B.k AND A.j = B.j
           LEFT ASOF JOIN three C MATCH_CONDITION (B.n > C.n) ON B.k = C.k
           WINDOW (A, B) = 9 AND WINDOW (B, C) = 6""",
        """SELECT A.n, B.n, C.n, C.s FROM one A
           LEFT JOIN LATERAL (SELECT * FROM two B WHERE A.k = B.k AND A.j = B.j AND A.n - B.n BETWEEN 0 AND 9
               ORDER BY B.n DESC, k NULLS FIRST, j, v NULLS FIRST, s LIMIT 1) B ON true
           LEFT JOIN LATERAL (SELECT * FROM three C WHERE B.k = C.k AND B.n - C.n BETWEEN 1 AND 6
               ORDER BY C.n DESC, k NULLS FIRST, j, v NULLS FIRST, s LIMIT 1) C ON true""",
    ),
    "asof after others": (
        f"""SELECT A.n AS a, B.n AS b, C.n AS c, C.v FROM one A JOIN two B ON A.k = B.k AND A.j = B.j
            ASOF JOIN three C MATCH_CONDITION (B.n <= C.n) ON B.k = C.k AND C.v >= A.v {AB} AND {BC}""",
        f"""SELECT A.n, B.n, C.n, C.v FROM one A JOIN two B ON A.k = B.k AND A.j = B.j AND {AB_ON}
            JOIN LATERAL (SELECT * FROM three C WHERE B.k = C.k AND C.v >= A.v AND {BC_ON}
               ORDER BY C.n, k NULLS FIRST, j, v NULLS FIRST, s LIMIT 1) C ON true""",
    ),
    "asof beside others": (
        f"""SELECT A.n AS a, B.n AS b, C.n AS c FROM one A LEFT JOIN two B ON A.k = B.k AND A.j = B.j
            LEFT ASOF JOIN three C MATCH_CONDITION ((A.n >= (C.n))) ON A.k = C.k
            {AB} AND WINDOW (A, C) = 6""",
        f"""SELECT A.n, B.n, C.n FROM one A LEFT JOIN two B ON A.k = B.k AND A.j = B.j AND {AB_ON}
            LEFT JOIN LATERAL (SELECT * FROM three C WHERE A.k = C.k AND A.n - C.n BETWEEN 0 AND 6
               ORDER BY C.n DESC, k NULLS FIRST, j, v NULLS FIRST, s LIMIT 1) C ON true""",
    ),
    "asof before others": (
        f"""SELECT A.n AS a, B.n AS b, C.n AS c FROM one A
            ASOF JOIN two B MATCH_CONDITION (A.n <= B.n) ON A.k = B.k AND A.j = B.j
            RIGHT JOIN three C ON B.k = C.k AND B.j = C.j {AB} AND {BC}""",
        f"""SELECT A.n, B.n, C.n FROM (one A
            JOIN LATERAL (SELECT * FROM two B WHERE A.k = B.k AND A.j = B.j AND B.n - A.n BETWEEN 0 AND 5
               ORDER BY B.n, k NULLS FIRST, j, v NULLS FIRST, s LIMIT 1) B ON true)
            RIGHT JOIN three C ON B.k = C.k AND B.j = C.j AND {BC_ON}""",
    ),
    # A row that meets none of B may have a partner in C.
    "one side": (
        f"""SELECT A.n AS a, B.n AS b, C.n AS c FROM one A LEFT JOIN two B ON A.k = B.k AND A.v > 4
            LEFT JOIN three C ON A.k = C.k AND A.j = C.j {AB} AND {AC}""",
        f"""SELECT A.n, B.n, C.n FROM one A LEFT JOIN two B ON A.k = B.k AND A.v > 4 AND {AB_ON}
            LEFT JOIN three C ON A.k = C.k AND A.j = C.j AND {AC_ON}""",
    ),
    # Nothing can be inside the windows of one join, and the others go on.
    "empty": (
        f"""SELECT A.n AS a, B.n AS b, C.s FROM one A LEFT JOIN two B ON A.k = B.k
            LEFT JOIN three C ON A.k = C.k AND A.j = C.j {AB} AND WINDOW (A, C) BETWEEN 5 AND 1""",
        f"""SELECT A.n, B.n, C.s FROM one A LEFT JOIN two B ON A.k = B.k AND {AB_ON}
            LEFT JOIN three C ON A.k = C.k AND false""",
    ),
    "empty first": (
        f"""SELECT A.n AS a, B.n AS b, C.s FROM one A LEFT JOIN two B ON A.k = B.k
            LEFT JOIN three C ON A.k = C.k AND A.j = C.j
            WINDOW (A, B) = 1 AND WINDOW (A, B) BETWEEN 4 AND 9 AND {AC}""",
        f"""SELECT A.n, B.n, C.s FROM one A LEFT JOIN two B ON A.k = B.k AND false
            LEFT JOIN three C ON A.k = C.k AND A.j = C.j AND {AC_ON}""",
    ),
    "or": (
        """SELECT A.n AS a, B.n AS b, C.n AS c FROM one A LEFT JOIN two B ON A.k = B.k
            LEFT JOIN three C ON B.k = C.k AND B.j = C.j
            (WINDOW (A, B) BETWEEN -2 AND 0 OR WINDOW (A, B) BETWEEN 3 AND 5)
            AND (WINDOW (A, C) = 1 OR (DWINDOW (A, B) = 4 AND DWINDOW (C, B) = 8))""",
        """SELECT A.n, B.n, C.n FROM one A
            LEFT JOIN two B ON A.k = B.k AND (B.n - A.n BETWEEN -2 AND 0 OR B.n - A.n BETWEEN 3 AND 5)
            LEFT JOIN three C ON B.k = C.k AND B.j = C.j
            AND (abs(C.n - A.n) <= 1 OR (B.n - A.n BETWEEN 0 AND 4 AND B.n - C.n BETWEEN 0 AND 8))""",
    ),
    "or of a base": (
        """SELECT A.n AS a, B.n AS b, C.n AS c FROM one A JOIN two B ON A.k = B.k AND A.j = B.j
            ANTI JOIN three D ON A.k = D.k AND D.v > 6 LEFT JOIN three C ON A.k = C.k
            (WINDOW (A, B) = 1 OR WINDOW (A, B) BETWEEN 4 AND 9) AND WINDOW (A, D) = 2
            AND (WINDOW (A, C) = 1 OR (DWINDOW (B, C) = 3 AND DWINDOW (A, B) = 5))""",
        """SELECT A.n, B.n, C.n FROM (one A JOIN two B ON A.k = B.k AND A.j = B.j
            AND (abs(B.n - A.n) <= 1 OR B.n - A.n BETWEEN 4 AND 9))
            LEFT JOIN three C ON A.k = C.k
            AND (abs(C.n - A.n) <= 1 OR (C.n - B.n BETWEEN 0 AND 3 AND B.n - A.n BETWEEN 0 AND 5))
            WHERE NOT EXISTS (SELECT * FROM three D WHERE A.k = D.k AND D.v > 6 AND abs(D.n - A.n) <= 2)""",
    ),
    "asof or": (
        """SELECT A.n AS a, B.n AS b, C.n AS c FROM one A JOIN two B ON A.k = B.k AND A.j = B.j
            LEFT ASOF JOIN three C MATCH_CONDITION (B.n <= C.n) ON B.k = C.k
            WINDOW (A, B) = 4 AND (DWINDOW (A, C) = 1 OR WINDOW (B, C) BETWEEN 3 AND 6)""",
        """SELECT A.n, B.n, C.n FROM one A JOIN two B ON A.k = B.k AND A.j = B.j AND abs(B.n - A.n) <= 4
            LEFT JOIN LATERAL (SELECT * FROM three C WHERE B.k = C.k AND B.n <= C.n
               AND (C.n - A.n BETWEEN 0 AND 1 OR C.n - B.n BETWEEN 3 AND 6)
               ORDER BY C.n, k NULLS FIRST, j, v NULLS FIRST, s LIMIT 1) C ON true""",
    ),
    # A row of A without such a pair, and the pairs with it.
    "nested": (
        f"""SELECT A.n AS a, B.n AS b, C.n AS c, C.s AS u FROM one A
            LEFT JOIN (two B JOIN three C ON B.k = C.k AND B.j = C.j) ON A.k = B.k AND C.v > 1
            {AB} AND {BC} AND WINDOW (A, C) = 6""",
        f"""SELECT A.n, B.n, C.n, C.s FROM one A
            LEFT JOIN (two B JOIN three C ON B.k = C.k AND B.j = C.j AND {BC_ON})
            ON A.k = B.k AND C.v > 1 AND {AB_ON} AND abs(C.n - A.n) <= 6""",
    ),
    "nested twice": (
        f"""SELECT A.n AS a, B.n AS b, C.n AS c, D.n AS d FROM (one A
            RIGHT JOIN (two B LEFT JOIN three C ON B.k = C.k AND B.j = C.j) ON A.k = B.k AND A.s = B.s)
            FULL JOIN (one D) ON A.j = D.j AND A.k = D.k
            {AB} AND {BC} AND WINDOW (A, D) = 2""",
        f"""SELECT A.n, B.n, C.n, D.n FROM (one A
            RIGHT JOIN (two B LEFT JOIN three C ON B.k = C.k AND B.j = C.j AND {BC_ON})
                ON A.k = B.k AND A.s = B.s AND {AB_ON})
            FULL JOIN one D ON A.j = D.j AND A.k = D.k
            AND abs(D.n - A.n) <= 2""",
    ),
    "nested using": (
        f"""SELECT k, A.n AS a, B.j, C.n AS c FROM one A LEFT JOIN (two B JOIN three C USING (k, j)) USING (k)
            {AB} AND {BC}""",
        f"""SELECT A.k, A.n, B.j, C.n FROM one A
            LEFT JOIN (two B JOIN three C ON B.k = C.k AND B.j = C.j AND {BC_ON})
            ON A.k = B.k AND {AB_ON}""",
    ),
    # Both sides are joins.
    "bushy": (
        f"""SELECT A.n AS a, B.n AS b, C.n AS c, D.s FROM (one A JOIN two B ON A.k = B.k AND A.j = B.j)
            LEFT JOIN (three C JOIN one D ON C.k = D.k AND C.j = D.j) ON A.k = C.k AND B.s = D.s AND C.v > A.v
            {AB} AND {AC} AND WINDOW (C, D) = 3""",
        f"""SELECT A.n, B.n, C.n, D.s FROM (one A JOIN two B ON A.k = B.k AND A.j = B.j AND {AB_ON})
            LEFT JOIN (three C JOIN one D ON C.k = D.k AND C.j = D.j AND abs(C.n - D.n) <= 3)
            ON A.k = C.k AND B.s = D.s AND C.v > A.v AND {AC_ON}""",
    ),
    "bushy full": (
        f"""SELECT A.n AS a, B.n AS b, C.n AS c, D.n AS d
            FROM (one A LEFT JOIN two B ON A.k = B.k AND A.j = B.j)
            FULL JOIN (three C LEFT JOIN one D ON C.k = D.k AND C.j = D.j) ON A.k = C.k AND A.s = C.s
            AND (D.v > 3 OR D.v IS NULL) {AB} AND {AC} AND WINDOW (C, D) = 3""",
        f"""SELECT A.n, B.n, C.n, D.n FROM (one A LEFT JOIN two B ON A.k = B.k AND A.j = B.j AND {AB_ON})
            FULL JOIN (three C LEFT JOIN one D ON C.k = D.k AND C.j = D.j AND abs(C.n - D.n) <= 3)
            ON A.k = C.k AND A.s = C.s AND (D.v > 3 OR D.v IS NULL) AND {AC_ON}""",
    ),
    "right of three": (
        f"""SELECT A.n AS a, B.n AS b, C.n AS c, D.n AS d FROM one A
            LEFT JOIN (two B JOIN three C ON B.k = C.k AND B.j = C.j JOIN one D ON C.k = D.k AND C.j = D.j)
            ON A.k = B.k AND A.v < D.v {AB} AND {BC} AND WINDOW (C, D) = 3""",
        f"""SELECT A.n, B.n, C.n, D.n FROM one A
            LEFT JOIN (two B JOIN three C ON B.k = C.k AND B.j = C.j AND {BC_ON}
                JOIN one D ON C.k = D.k AND C.j = D.j AND abs(C.n - D.n) <= 3)
            ON A.k = B.k AND A.v < D.v AND {AB_ON}""",
    ),
    "nested left": (
        f"""SELECT A.n AS a, B.n AS b, C.n AS c FROM one A
            LEFT JOIN (two B LEFT JOIN three C ON B.k = C.k AND B.v < 6) ON A.k = B.k AND A.j = B.j
            AND coalesce(C.v, 4) > 3 {AB} AND {BC}""",
        f"""SELECT A.n, B.n, C.n FROM one A
            LEFT JOIN (two B LEFT JOIN three C ON B.k = C.k AND B.v < 6 AND {BC_ON})
            ON A.k = B.k AND A.j = B.j AND coalesce(C.v, 4) > 3 AND {AB_ON}""",
    ),
    "nested anti": (
        f"""SELECT A.n AS a, B.n AS b FROM one A
            LEFT JOIN (two B ANTI JOIN three C ON B.k = C.k AND B.j = C.j) ON A.k = B.k AND A.j = B.j
            {AB} AND {BC}""",
        f"""SELECT A.n, B.n FROM one A LEFT JOIN (SELECT * FROM two B WHERE NOT EXISTS
            (SELECT * FROM three C WHERE B.k = C.k AND B.j = C.j AND {BC_ON})) B
            ON A.k = B.k AND A.j = B.j AND {AB_ON}""",
    ),
    # A row without a pair of B and C, and one with one.
    "without pairs": (
        f"""SELECT A.n AS a, A.s FROM one A ANTI JOIN (two B JOIN three C ON B.k = C.k AND B.j = C.j)
            ON A.k = B.k AND A.s = C.s AND A.v > 1 {AB} AND {BC}""",
        f"""SELECT A.n, A.s FROM one A WHERE NOT EXISTS
            (SELECT * FROM two B JOIN three C ON B.k = C.k AND B.j = C.j AND {BC_ON}
             WHERE A.k = B.k AND A.s = C.s AND A.v > 1 AND {AB_ON})""",
    ),
    "with pairs": (
        f"""SELECT A.n AS a, D.n AS d
            FROM one A SEMI JOIN (two B LEFT JOIN three C ON B.k = C.k AND B.j = C.j)
            ON A.k = B.k AND A.j = B.j AND (C.v IS NULL OR C.v > A.v)
            LEFT JOIN three D ON A.k = D.k AND A.j = D.j {AB} AND {BC} AND WINDOW (A, D) = 3""",
        f"""SELECT A.n, D.n FROM (SELECT * FROM one A WHERE EXISTS
            (SELECT * FROM two B LEFT JOIN three C ON B.k = C.k AND B.j = C.j AND {BC_ON}
             WHERE A.k = B.k AND A.j = B.j AND (C.v IS NULL OR C.v > A.v) AND {AB_ON})) A
            LEFT JOIN three D ON A.k = D.k AND A.j = D.j AND abs(A.n - D.n) <= 3""",
    ),
    "asof of pairs": (
        f"""SELECT A.n AS a, B.n AS b, C.n AS c, C.s FROM one A
            LEFT ASOF JOIN (two B JOIN three C ON B.k = C.k AND B.j = C.j) MATCH_CONDITION (A.n >= C.n)
            ON A.k = B.k AND A.v > 1 WINDOW (A, C) = 6 AND {BC}""",
        f"""SELECT A.n, X.b, X.c, X.s FROM one A LEFT JOIN LATERAL
            (SELECT B.n AS b, C.n AS c, C.s FROM two B JOIN three C ON B.k = C.k AND B.j = C.j AND {BC_ON}
             WHERE A.k = B.k AND A.v > 1 AND A.n - C.n BETWEEN 0 AND 6
             ORDER BY C.n DESC, B.n, B.k NULLS FIRST, B.j, B.v NULLS FIRST, B.s,
               C.k NULLS FIRST, C.j, C.v NULLS FIRST, C.s LIMIT 1) X ON true""",
    ),
    "comma": (
        f"""SELECT A.n AS a, B.n AS b, C.n AS c
            FROM one A, two B RIGHT JOIN three C ON B.k = C.k AND B.j = C.j {BC} AND {AC}
            WHERE A.k = C.k AND A.j = C.j""",
        f"""SELECT A.n, B.n, C.n FROM one A
            JOIN (two B RIGHT JOIN three C ON B.k = C.k AND B.j = C.j AND {BC_ON})
            ON A.k = C.k AND A.j = C.j AND {AC_ON}""",
    ),
    "four": (
        f"""SELECT A.n AS a, B.n AS b, C.n AS c, D.s FROM one A LEFT JOIN two B ON A.k = B.k AND A.j = B.j
            LEFT JOIN three C ON A.k = C.k AND A.j = C.j LEFT JOIN one D ON B.k = D.k AND C.k = D.k
            {AB} AND {AC} AND WINDOW (B, D) = 3 AND WINDOW (C, D) = 5""",
        f"""SELECT A.n, B.n, C.n, D.s FROM one A LEFT JOIN two B ON A.k = B.k AND A.j = B.j AND {AB_ON}
            LEFT JOIN three C ON A.k = C.k AND A.j = C.j AND {AC_ON}
            LEFT JOIN one D ON B.k = D.k AND C.k = D.k AND abs(D.n - B.n) <= 3 AND abs(D.n - C.n) <= 5""",
    ),
    # What ON says of streams before the join, of which one may have no row.
    "before": (
        f"""SELECT A.n AS a, B.n AS b, C.n AS c FROM one A LEFT JOIN two B ON A.k = B.k AND A.v > 2
            LEFT JOIN three C ON A.k = C.k AND A.j = C.j AND (A.v < B.v OR B.n IS NULL) {AB} AND {AC}""",
        f"""SELECT A.n, B.n, C.n FROM one A LEFT JOIN two B ON A.k = B.k AND A.v > 2 AND {AB_ON}
            LEFT JOIN three C ON A.k = C.k AND A.j = C.j AND (A.v < B.v OR B.n IS NULL) AND {AC_ON}""",
    ),
    "not there": (
        f"""SELECT A.n AS a, B.n AS b FROM one A FULL JOIN two B ON A.k = B.k AND A.j = B.j AND B.v > 2
            ANTI JOIN three C ON A.k = C.k AND B.v IS NULL {AB} AND {AC}""",
        f"""SELECT A.n, B.n FROM one A FULL JOIN two B ON A.k = B.k AND A.j = B.j AND B.v > 2 AND {AB_ON}
            WHERE NOT EXISTS (SELECT * FROM three C WHERE A.k = C.k AND B.v IS NULL AND {AC_ON})""",
    ),
    # A key that is something where the row is not there.
    "filled": (
        f"""SELECT A.n AS a, B.n AS b, C.n AS c FROM one A LEFT JOIN two B ON A.k = B.k AND A.j = B.j
            LEFT JOIN three C ON coalesce(B.j, 1) = C.j AND coalesce(B.v, 3) <= C.v {AB} AND {AC}""",
        f"""SELECT A.n, B.n, C.n FROM one A LEFT JOIN two B ON A.k = B.k AND A.j = B.j AND {AB_ON}
            LEFT JOIN three C ON coalesce(B.j, 1) = C.j AND coalesce(B.v, 3) <= C.v AND {AC_ON}""",
    ),
    "filled texts": (
        f"""SELECT A.n AS a, B.n AS b, C.n AS c FROM one A LEFT JOIN two B ON A.k = B.k AND A.j = B.j
            RIGHT JOIN three C ON upper(coalesce(B.s, 'z')) = upper(C.s) AND coalesce(B.k, A.k) = A.k
            AND abs(A.k) = C.k {AB} AND {AC}""",
        f"""SELECT A.n, B.n, C.n FROM one A LEFT JOIN two B ON A.k = B.k AND A.j = B.j AND {AB_ON}
            RIGHT JOIN three C ON upper(coalesce(B.s, 'z')) = upper(C.s) AND coalesce(B.k, A.k) = A.k
            AND abs(A.k) = C.k AND {AC_ON}""",
    ),
    "inner before full": (
        f"""SELECT A.n AS a, B.n AS b, C.n AS c FROM one A JOIN two B ON A.k = B.k AND A.v + B.v > 6
            FULL JOIN three C ON B.k = C.k AND B.j = C.j {AB} AND {BC}""",
        f"""SELECT A.n, B.n, C.n FROM one A JOIN two B ON A.k = B.k AND A.v + B.v > 6 AND {AB_ON}
            FULL JOIN three C ON B.k = C.k AND B.j = C.j AND {BC_ON}""",
    ),
}
"""Statements for wjoin, and what they mean to DuckDB."""


SEED = 31


@pytest.mark.parametrize(
    ("home", "names"),
    [
        ("files", ["bushy full"]),
        pytest.param("files", list(STATEMENTS), marks=pytest.mark.long),
        pytest.param("spark", list(STATEMENTS), marks=pytest.mark.long),
    ],
    ids=["some", "files", "spark"],
)
def test_joins_of_streams(streams: Streams, home: str, names: list[str]) -> None:
    assert_as_duckdb(streams, home, {name: STATEMENTS[name] for name in names})


@pytest.mark.parametrize("name", tiers(STATEMENTS, long=[*STATEMENTS][1:]))
def test_joins_of_tables(streams: Streams, name: str) -> None:
    on_time(streams, 2)
    found = streams.over_tables(STATEMENTS[name][0])
    assert found == streams.expected(STATEMENTS[name][1])


def test_explain_says_when_each_join_decides(streams: Streams) -> None:
    explained = streams.session.explain(STATEMENTS["chain"][0])
    assert "a row of A without a partner is returned when B's watermark passes n + 5" in explained
    assert (
        "a row of A and B without a partner is returned when C's watermark passes A.n + 9 or B.n + 4"
        in explained
    )
    explained = streams.session.explain(STATEMENTS["star"][0])
    assert "only rows of A with (A.v > 2) have partners" in explained
    explained = streams.session.explain(STATEMENTS["asof"][0])
    assert "each row of B and A with the last row of C that is earlier, by the times of B" in explained


@pytest.mark.long
@pytest.mark.parametrize("home", ["files", "spark"])
def test_rows_that_lack_others_move_to_other_workers(streams: Streams, home: str) -> None:
    names = ["chain", "full", "path"]
    come_after_a_move(streams, home, {name: STATEMENTS[name][0] for name in names})
    for name in names:
        assert streams.found(name) == streams.expected(STATEMENTS[name][1]), name


NEAR_AT = "WINDOW (A, B) BETWEEN -2 SECONDS AND 5 SECONDS"
LATEST_B = """(SELECT * FROM two B WHERE A.k = B.k AND B.n BETWEEN A.n - 7 AND A.n
    ORDER BY B.n DESC, k NULLS FIRST, j, v NULLS FIRST, s LIMIT 1) B"""

GROUPS = {
    **{
        kind: (
            f"one_at A {kind} JOIN two_at B ON A.k = B.k {NEAR_AT}",
            f"one A {kind} JOIN two B ON A.k = B.k AND {AB_ON}",
        )
        for kind in ("LEFT", "RIGHT", "FULL", "SEMI", "ANTI")
    },
    "ASOF": (
        """one_at A LEFT ASOF JOIN two_at B MATCH_CONDITION (A.at >= B.at) ON A.k = B.k
           WINDOW (A, B) = 7 SECONDS""",
        f"one A LEFT JOIN LATERAL {LATEST_B} ON true",
    ),
    "PATH": (
        """one_at A, two_at B, three_at C PATH (A, NOT C, B) WITHIN (6 SECONDS)
           WHERE A.k = B.k AND A.j = B.j AND A.k = C.k AND C.s <> 'x'""",
        """one A, two B WHERE A.k = B.k AND A.j = B.j AND B.n - A.n BETWEEN 0 AND 6 AND NOT EXISTS
           (SELECT * FROM three C WHERE A.k = C.k AND C.s <> 'x' AND C.n BETWEEN A.n AND B.n)""",
    ),
    "ROWS": (
        "one_at A, two_at B WINDOW (A, B) = 9 SECONDS AND WINDOW A = 12 ROWS WHERE A.k = B.k",
        """one A, two B WHERE A.k = B.k AND abs(A.n - B.n) <= 9
           AND (SELECT count(*) FROM one x WHERE x.n > A.n AND x.n <= greatest(A.n, B.n)) < 12""",
    ),
    "TREE": (
        """one_at A LEFT JOIN two_at B ON A.k = B.k FULL JOIN three_at C ON A.j = C.j AND A.k = C.k
           WINDOW (A, B) BETWEEN -2 SECONDS AND 5 SECONDS
           AND WINDOW (A, C) BETWEEN -1 SECONDS AND 6 SECONDS""",
        f"""one A LEFT JOIN two B ON A.k = B.k AND {AB_ON}
            FULL JOIN three C ON A.j = C.j AND A.k = C.k AND {AC_ON}""",
    ),
}
"""What stands after FROM, for wjoin and for DuckDB, by what waits."""


@pytest.mark.long
@pytest.mark.parametrize("kind", GROUPS)
def test_groups_by_the_time_of_results_close_and_lose_no_row(streams: Streams, kind: str) -> None:
    """A row without a partner comes late, and its group waits for it."""
    for name in streams.names:
        streams.session.sql(
            f"""CREATE OR REPLACE STREAM {name}_at ({COLUMNS}, at AS timestamp_seconds(n)) USING parquet
                OPTIONS (path '{streams.root / name}') WATERMARK at DELAY OF INTERVAL 20 SECONDS"""
        )
    streams.sinks(["counted"])
    window = "window(MATCH_TIME(), '20 seconds')"
    joined, meaning = GROUPS[kind]
    shown = f"SELECT unix_timestamp({window}.start) AS s, count(*) AS c FROM {joined} GROUP BY {window}"
    for last in (False, False, True):
        on_time(streams, 2)
        if last:
            end(streams)
        streams.insert({"counted": shown})
        if not last:
            # Groups that have been passed are there, those that rows wait for are not.
            early = streams.found("counted")
    latest = {"SEMI": "A.n", "ANTI": "A.n", "TREE": "greatest(A.n, B.n, C.n)"}
    time = f"{latest.get(kind, 'greatest(A.n, B.n)')} // 20 * 20"
    expected = streams.expected(f"SELECT {time} AS s, count(*) FROM {meaning} GROUP BY 1")
    assert streams.found("counted") == expected
    assert expected.total() > 3 and early.total() > 0 and early < expected
