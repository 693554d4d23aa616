"""What is wrong with a stream or sink of Kafka is said at once, where it stands."""

from pathlib import Path

import pyspark
import pytest

import wjoin
from tests.kafka.conftest import Topics
from tests.programs import run_python

pytestmark = pytest.mark.thorough

SILENT = "kafka.bootstrap.servers '127.0.0.1:1'"
"""A port at which nobody listens."""


def refusal(session: wjoin.Session, text: str) -> wjoin.WJoinError:
    with pytest.raises(wjoin.WJoinError) as refused:
        session.run_script(text)
    return refused.value


def test_no_broker(session: wjoin.Session) -> None:
    for text in (
        f"CREATE STREAM a (id INT) USING kafka OPTIONS ({SILENT}, subscribe 'a') FORMAT JSON",
        f"CREATE STREAM a USING kafka OPTIONS ({SILENT}, subscribePattern 'a.*')",
        f"CREATE SINK a USING kafka OPTIONS ({SILENT}, topic 'a') FORMAT JSON",
    ):
        error = refusal(session, text)
        assert error.code == "WJ617"
        assert error.message == "no broker answers at 127.0.0.1:1 within 15 seconds"
        assert error.span is not None and error.span.of(text) == "kafka"


def test_no_topic(session: wjoin.Session, topics: Topics) -> None:
    topic = topics.name("camera")
    topics.write(topic, ["{}"])
    wrong = topic.replace("camera", "camrea")
    text = f"CREATE STREAM a (id INT) USING kafka OPTIONS ({topics.options}, {{}}) FORMAT JSON"
    for option in (f"subscribe '{topic}, {wrong}'", f"""assign '{{"{wrong}": [0]}}'"""):
        error = refusal(session, text.format(option))
        assert (error.code, error.message) == ("WJ617", f"there is no topic {wrong} at {topics.servers}")
        assert error.help == f"did you mean {topic}?"
    session.sql(text.format(f"subscribePattern '{topic}.*'"))


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("STREAM a (id INT) USING kafka OPTIONS ({}, subscribe 'a')", "WJ106", "the stream a has columns"),
        ("STREAM a USING kafka OPTIONS ({}, subscribe 'a') FORMAT CSV", "WJ106", "the records of the"),
        ("STREAM a (id INT) USING json OPTIONS (path 'a') FORMAT JSON", "WJ106", "FORMAT is for the"),
        ("SINK a USING parquet OPTIONS (path 'a') KEY (id)", "WJ106", "KEY is for the records of Kafka"),
        ("SINK a USING kafka OPTIONS ({}, topic 'a') KEY (id)", "WJ106", "the sink a has a key, but"),
        ("SINK a USING kafka OPTIONS ({}, topic 'a') PARTITIONED BY (id)", "WJ106", "a sink of Kafka's has"),
        ("SINK a USING kafka OPTIONS ({}) FORMAT JSON", "WJ603", "the sink a lacks the option topic"),
        ("SINK a USING kafka OPTIONS (topic 'a')", "WJ603", "the sink a lacks the option kafka.bootstrap"),
        (
            "SINK a USING kafka OPTIONS ({}, topic 'a', sep ';') FORMAT JSON",
            "WJ603",
            "kafka has no option sep",
        ),
        (
            "STREAM a (id INT) USING kafka OPTIONS ({}, subscribe 'a', header 'true') FORMAT CSV",
            "WJ603",
            "kafka has no option header",
        ),
        (
            "STREAM a (id INT) USING kafka OPTIONS ({}, subscribe 'a', mode 'DROP') FORMAT CSV",
            "WJ603",
            "there is no mode DROP for reading records",
        ),
    ],
)
def test_declarations(session: wjoin.Session, topics: Topics, text: str, code: str, message: str) -> None:
    topics.write("a", ["{}"])
    error = refusal(session, f"CREATE {text.format(topics.options)}")
    assert error.code == code
    assert error.message.startswith(message)


def test_rows_that_do_not_fit_a_sink(session: wjoin.Session, topics: Topics) -> None:
    options = f"{topics.options}, topic '{topics.name('unfit')}'"
    session.sql(f"CREATE SINK keyed USING kafka OPTIONS ({options}) FORMAT JSON KEY (object_id)")
    error = refusal(session, "INSERT INTO keyed SELECT 1 AS obj_id")
    assert (error.code, error.help) == ("WJ202", "did you mean obj_id?")
    session.sql(f"CREATE SINK plain USING kafka OPTIONS ({options})")
    error = refusal(session, "INSERT INTO plain SELECT 1 AS obj_id")
    assert error.message == "the rows for plain have no column value, which is what Kafka keeps"
    session.run_script("INSERT INTO plain SELECT 'x' AS value")
    session.sql(f"CREATE SINK avro USING kafka OPTIONS ({options}) FORMAT AVRO")
    error = refusal(session, "INSERT INTO avro SELECT map(1, 2) AS m")
    assert (error.code, error.message) == ("WJ604", "Avro has no type for the column m, map<int,int>")


@pytest.mark.timeout(400)
def test_without_the_packages(jars: Path, tmp_path: Path) -> None:
    """The error names the package, in the version of the Spark in use."""
    run = ("-m", "wjoin.cli", "check", "-e")
    for text in (
        f"CREATE STREAM a (id INT) USING kafka OPTIONS ({SILENT}, subscribe 'a') FORMAT JSON",
        f"CREATE SINK a USING kafka OPTIONS ({SILENT}, topic 'a') FORMAT JSON",
    ):
        done = run_python(tmp_path, *run, text)
        assert done.returncode == 2, done.stdout
        assert "error[WJ616]: the package of Spark's for Kafka is not on the class path" in done.stderr
        assert f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}," in done.stderr


@pytest.mark.timeout(400)
def test_without_avro(topics: Topics, jars: Path, tmp_path: Path) -> None:
    without = [str(each) for each in (jars / "connector").glob("*.jar") if "avro" not in each.name]
    topics.write("a", ["{}"])
    text = f"CREATE STREAM a (id INT) USING kafka OPTIONS ({topics.options}, subscribe 'a') FORMAT AVRO"
    done = run_python(
        tmp_path, "-m", "wjoin.cli", "check", "-e", text, "--set", f"spark.jars={','.join(without)}"
    )
    assert done.returncode == 2, done.stdout
    assert "error[WJ616]: the package of Spark's for Avro is not on the class path" in done.stderr
    assert f"org.apache.spark:spark-avro_2.13:{pyspark.__version__}," in done.stderr
