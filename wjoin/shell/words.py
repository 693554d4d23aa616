"""The words that the shell completes and colours: Spark's and wjoin's, by the place where they can stand."""

from wjoin.grammar.lookahead import CLAUSE_WORDS

STATEMENTS = (
    *("SELECT", "CREATE STREAM", "CREATE SINK", "CREATE OR REPLACE STREAM", "CREATE OR REPLACE SINK"),
    *("CREATE OR REPLACE VIEW", "CREATE TABLE", "CREATE VIEW", "INSERT INTO", "INSERT OVERWRITE", "EXPLAIN"),
    *("SHOW STREAMS", "SHOW SINKS", "SHOW QUERIES", "SHOW PREDICATES", "SHOW TABLES", "SHOW CREATE"),
    *("DESCRIBE", "STOP QUERY", "DROP STREAM", "DROP SINK", "DROP TABLE", "DROP VIEW", "ALTER STREAM"),
    *("ANALYZE STREAM", "SET", "RESET", "WITH", "VALUES", "USE", "CACHE TABLE", "DELETE FROM", "MERGE INTO"),
    *("TRUNCATE TABLE", "UPDATE"),
)
"""With what a statement begins."""

SHOWN = ("STREAMS", "SINKS", "QUERIES", "PREDICATES", "TABLES", "VIEWS", "CREATE", "COLUMNS", "DATABASES")
SHOWN_CREATE = ("STREAM", "SINK", "TABLE")
DESCRIBED = ("STREAM", "SINK", "QUERY", "TABLE")
DROPPED = ("STREAM", "SINK", "TABLE", "VIEW")
ALTERED = ("STREAM", "TABLE", "VIEW")
CREATED = (
    *("STREAM", "SINK", "VIEW", "TABLE", "OR REPLACE STREAM", "OR REPLACE SINK", "OR REPLACE VIEW"),
    *("OR REPLACE TEMPORARY VIEW", "TEMPORARY VIEW"),
)
EXPLAINED = ("COST", "ANALYZE", "FORMATTED", "SELECT", "INSERT INTO", "WITH")
STATISTICS = (
    *("rate", "width", "disorder", "selectivity", "matched"),
    *("distinct.", "heaviest.", "minimum.", "maximum."),
)

UNITS = ("SECONDS", "MINUTES", "HOURS", "DAYS", "WEEKS", "MILLISECONDS", "MICROSECONDS")
"""The units of a duration, those that are written most first."""

AFTER_RELATION = (
    *(
        "AS",
        "WINDOW",
        "DWINDOW",
        "PATH",
        "WHERE",
        "JOIN",
        "ON",
        "WATERMARK",
        "GROUP BY",
        "ORDER BY",
        "HAVING",
    ),
    *("LIMIT", "UNION ALL", "CROSS JOIN", "LEFT JOIN", "LATERAL VIEW", "TABLESAMPLE"),
)
AFTER_OPERAND = (
    *("FROM", "WHERE", "AND", "OR", "AS", "GROUP BY", "ORDER BY", "HAVING", "LIMIT", "WINDOW", "DWINDOW"),
    *(
        "PATH",
        "BETWEEN",
        "IN",
        "IS NULL",
        "IS NOT NULL",
        "LIKE",
        "RLIKE",
        "NOT",
        "UNION",
        "UNION ALL",
        "EXCEPT",
    ),
    *("INTERSECT", "ASC", "DESC", "THEN", "ELSE", "WHEN", "END", "OVER", "COLLATE"),
)
AFTER_DURATION = ("AND", "OR", "WHERE", "GROUP BY", "ORDER BY", "LIMIT")
BEFORE_OPERAND = (
    *("CASE", "NOT", "NULL", "TRUE", "FALSE", "CAST", "EXISTS", "INTERVAL", "TIMESTAMP", "DATE", "DISTINCT"),
    *("MATCH_TIME()", "MATCH_START()", "MATCH_SPAN()"),
)

KEYWORDS = frozenset(
    word
    for phrase in (
        *(*STATEMENTS, *SHOWN, *DESCRIBED, *CREATED, *ALTERED, *EXPLAINED),
        *(*AFTER_RELATION, *AFTER_OPERAND, *AFTER_DURATION, *BEFORE_OPERAND),
    )
    for word in phrase.removesuffix("()").split()
) | frozenset(
    """
    ALL ANALYZE ANTI ANY ARRAY BEGIN BY CLUSTER COMMENT COST CUBE CURRENT DATABASE DECLARE DELAY DISTRIBUTE
    ESCAPE EXTENDED FILTER FOR FORMAT FORMATTED FULL FUNCTION FUNCTIONS GROUPING HINT IF ILIKE INNER INTO IS
    LATERAL LOCAL MATCHED MAP NATURAL NULLS OF OFFSET ON OPTIONS OUTER OVERWRITE PARTITION PARTITIONED PIVOT
    PRECEDING QUALIFY RANGE RECURSIVE RIGHT ROLLUP ROW ROWS SAMPLE SEMI SETS SORT STATISTICS STRUCT
    TBLPROPERTIES TEMP TEMPORARY TO UNBOUNDED UNPIVOT USING VALUES WATERMARK WITHIN
    """.split()
)
"""The words that have the colour of keywords, upper case."""

CLAUSES = CLAUSE_WORDS | {"WATERMARK", "WITHIN", "BIDIRECTIONAL", "STREAM", "SINK", "DELAY"}
"""Those among them that are wjoin's."""

SPARK_SETTINGS = (
    *("spark.sql.shuffle.partitions", "spark.sql.session.timeZone", "spark.sql.ansi.enabled"),
    *("spark.sql.streaming.metricsEnabled", "spark.sql.adaptive.enabled", "spark.sql.caseSensitive"),
)
"""Settings of Spark that one changes while a session runs."""
