"""Kafka, as Spark reaches it: its connector, its brokers and its topics, looked at before a query starts."""

import json
import re
from collections.abc import Mapping
from typing import Any

from py4j.java_gateway import JavaClass
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.suggestions import suggestion
from wjoin.sources.format_options import own_option

PROVIDER = "kafka"
SERVERS = "kafka.bootstrap.servers"

PATIENCE_MILLISECONDS = 15_000
"""How long a broker may take to answer; Kafka's own clients try for minutes."""

_STARTS = ("startingoffsets", "startingtimestamp")
"""With what the options begin that say where a first start reads, in lower case."""

_SHOWN_NAMES = 10
_CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13"
_AVRO = "org.apache.spark:spark-avro_2.13"
_MISSING = ("Failed to find data source", "DATA_SOURCE_NOT_FOUND", "NoClassDefFoundError", "AVRO_NOT_LOADED")


def is_kafka(provider: str) -> bool:
    """Return whether a format of Spark's is that of Kafka."""
    return provider.lower() == PROVIDER


def read_from_the_start(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a source, with what a first start reads where nothing says it: all there is.

    Spark's own choice is what comes after the start, so that a query that works off what is there has nothing
    to do.
    """
    if any(name.lower().startswith(_STARTS) for name in options):
        return dict(options)
    return {**options, "startingOffsets": "earliest"}


def whole_topics(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options with which a table has all records that the topics of a source have now."""
    return {
        name: value for name, value in options.items() if not name.lower().startswith((*_STARTS, "ending"))
    }


def missing_package(spark: SparkSession, error: BaseException, *, avro: bool = False) -> WJoinError | None:
    """Return what to add to the class path where an error says that something is missing there, else None."""
    if not any(words in str(error) for words in _MISSING):
        return None
    what, package = ("Avro", _AVRO) if avro else ("Kafka", _CONNECTOR)
    settings = f"spark.jars.packages={package}:{spark.version}"
    return WJoinError(
        "WJ616",
        f"the package of Spark's for {what} is not on the class path",
        help=f"start Spark with {settings}, others after a comma: after --set of wjoin run and wjoin shell, "
        "after --conf of spark-sql; docs/kafka.md has more",
    )


def require_connector(spark: SparkSession) -> None:
    """Refuse a Spark without its package for Kafka. Raises WJoinError WJ616."""
    try:
        spark.read.format(PROVIDER).load()
    except Exception as error:  # a missing class reaches Python as Py4J's own error, not as Spark's
        missing = missing_package(spark, error)
        if missing is not None:
            raise missing from error
        # It asks for options: it is there.


def refuse_absent(spark: SparkSession, options: Mapping[str, str]) -> None:
    """Refuse brokers that do not answer, and topics that are not there, which Spark waits for for minutes.

    ``options`` are those of a source or a sink; of a sink the topic may be made by the first record. Under
    Spark Connect nothing can be asked. Raises WJoinError WJ617.
    """
    servers = own_option(options, SERVERS)
    java: Any = getattr(spark, "_jvm", None)
    if servers is None or java is None:
        return
    clients = java.org.apache.kafka.clients.admin
    if not isinstance(clients.AdminClient, JavaClass):
        return
    given = java.java.util.HashMap()
    for name, value in options.items():
        if name.lower().startswith("kafka."):
            given[name[len("kafka.") :]] = value
    try:
        client = clients.AdminClient.create(given)
    except Py4JJavaError as error:
        raise _unreachable(servers, _reason(error)) from error
    try:
        _look(java, client, clients, servers, _topics(options))
    finally:
        client.close(java.java.time.Duration.ZERO)


def _look(java: Any, client: Any, clients: Any, servers: str, topics: list[str]) -> None:
    try:
        # Of what is listed first: a description waits four times as long as it is told to.
        wait = clients.ListTopicsOptions().timeoutMs(PATIENCE_MILLISECONDS)
        names = sorted(client.listTopics(wait).names().get())
    except Py4JJavaError as error:
        raise _unreachable(servers, _reason(error)) from error
    for topic in topics:
        if topic not in names:
            _refuse_topic(java, client, servers, topic, names)


def _refuse_topic(java: Any, client: Any, servers: str, topic: str, names: list[str]) -> None:
    """Refuse a topic that is not listed, unless it can be described: it is there, but may not be listed."""
    try:
        client.describeTopics(java.java.util.ArrayList([topic])).topicNameValues()[topic].get()
    except Py4JJavaError as error:
        reason = _reason(error)
        if "UnknownTopicOrPartition" not in reason:
            raise _unreachable(servers, reason) from error
        known = ", ".join(names[:_SHOWN_NAMES]) + (", …" if len(names) > _SHOWN_NAMES else "")
        raise WJoinError(
            "WJ617",
            f"there is no topic {topic} at {servers}",
            help=suggestion(topic, names) or f"make it before it is read; there are: {known or 'none'}",
        ) from error


def reads_topic(options: Mapping[str, str], topic: str) -> bool:
    """Return whether a source with these options reads a topic."""
    pattern = own_option(options, "subscribePattern")
    if pattern is not None:
        return re.fullmatch(pattern, topic) is not None
    return topic in _topics(options)


def _topics(options: Mapping[str, str]) -> list[str]:
    """Return the topics that a source names; none of a pattern, or of a sink."""
    subscribed, assigned = own_option(options, "subscribe"), own_option(options, "assign")
    if subscribed is not None:
        return [name.strip() for name in subscribed.split(",") if name.strip()]
    try:
        return list(json.loads(assigned)) if assigned is not None else []
    except ValueError:
        # Spark says what is wrong with it.
        return []


def _unreachable(servers: str, reason: str) -> WJoinError:
    message = f"Kafka at {servers} cannot be asked: {reason}"
    if "TimeoutException" in reason:
        message = f"no broker answers at {servers} within {PATIENCE_MILLISECONDS // 1000} seconds"
    remedy = f"check {SERVERS}, the listeners that the brokers advertise, and the options of their security"
    return WJoinError("WJ617", message, help=remedy)


def _reason(error: Py4JJavaError) -> str:
    """Return the cause of what a future or a constructor of Kafka's raised."""
    cause = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    return str(cause.toString()).removeprefix("org.apache.kafka.common.errors.")
