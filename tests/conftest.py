"""What the tests share: a Spark session in each process, wjoin sessions on it, and the order of the tests."""

import fcntl
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from hypothesis import is_hypothesis_test
from pyspark.sql import SparkSession

import wjoin
from tests.programs import find_jars
from wjoin.sources.catalog import catalog_of

_HERE = Path(__file__).parent
# Tests in these folders run on Spark.
_ON_SPARK = {"spark", "stream", "faults", "compat", "delta", "iceberg", "kafka"}
# A file whose tests all have one of these marks.
_ONLY_QUICK = re.compile(r"quick( and not \w+)*")
"""Asks for quick tests, or for some of them."""

_MARKED = re.compile(r"^pytestmark = .*\b(long|thorough)\b", re.MULTILINE)
# When they run, after the tests without any of these marks; the first mark counts. Files begin in this order:
# one that takes minutes must not begin last, when the other processes have nothing left to do.
_COSTLY = {"faults": 2, "spark": 3, "slow": 1}

# Much code runs a few times only here: what a thorough compiler of it takes is more than it saves.
_QUICK_START = "-XX:TieredStopAtLevel=1"

# How many of a hundred examples a property test draws, by the name for --hypothesis-profile.
for name, examples in {"quick": 5, "many": 100, "thorough": 500}.items():
    hypothesis.settings.register_profile(
        name,
        max_examples=examples,
        deadline=None,  # the first example on Spark takes seconds
        derandomize="CI" in os.environ,  # a red run in CI is then the fault of the change
        print_blob=True,
    )
hypothesis.settings.load_profile("quick")


def pytest_configure(config: pytest.Config) -> None:
    """Keep the costs that this machine's user has calibrated out of the plans that tests expect.

    And give every JVM, also of processes that tests start, the option of the shared one, and start no process
    in the background.
    """
    folder = tempfile.TemporaryDirectory(prefix="wjoin-tests-")
    config.add_cleanup(folder.cleanup)
    os.environ["XDG_CONFIG_HOME"] = folder.name
    os.environ.setdefault("SPARK_SUBMIT_OPTS", _QUICK_START)
    os.environ["WJOIN_PREPARE"] = "off"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kills", type=int, default=2, help="how often the crash tests kill a query in all")
    parser.addoption("--thorough", action="store_true", help="run the tests marked so, too (`make thorough`)")
    parser.addoption("--state", default="auto", help="where queries keep their state, as wjoin.state has it")
    parser.addoption("--minutes", type=float, default=10.0, help="how long a thorough attack takes")
    parser.addoption("--backlog", type=int, default=12_000_000, help="rows that wait in the tests of memory")
    parser.addoption("--limit-gb", type=float, default=4.0, help="anonymous memory that these may take")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave a file without a quick test out of `make test`: reading it takes as long as some tests."""
    if not _ONLY_QUICK.fullmatch(config.option.markexpr) or not collection_path.name.startswith("test_"):
        return None
    text = collection_path.read_text("utf-8")
    return True if "quick" not in text and _MARKED.search(text) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests by folder and fixture, put those that need Spark last, leave out the thorough ones."""
    for item in items:
        if not marked(item, "long", "thorough"):
            item.add_marker(pytest.mark.quick)
        if _draws_examples(getattr(item, "obj", None)):
            item.add_marker(pytest.mark.property)
        folder = item.path.relative_to(_HERE).parts[0]
        if folder in _ON_SPARK or "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
        if folder == "faults":
            item.add_marker(pytest.mark.faults)
    if not config.getoption("--thorough"):
        left_out = [item for item in items if not marked(item, "quick", "long")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if marked(item, "quick", "long")]
    items.sort(key=_cost)


def _draws_examples(test: object) -> bool:
    """Whether a test is one of Hypothesis, or has one inside."""
    code = getattr(test, "__code__", None)
    return is_hypothesis_test(test) or (code is not None and "given" in code.co_names)


def marked(item: pytest.Item, *names: str) -> bool:
    """Whether a test has one of these marks."""
    return any(item.get_closest_marker(name) for name in names)


def _cost(item: pytest.Item) -> int:
    """Return 0 for a fast test, 1 for a slow one, 2 for one that kills queries, 3 for another on Spark."""
    return next((cost for name, cost in _COSTLY.items() if marked(item, name)), 0)


@pytest.fixture(scope="session")
def kills(request: pytest.FixtureRequest) -> int:
    """How often the crash tests kill a running query: 2, or the number given with ``--kills``."""
    return request.config.getoption("--kills")


@pytest.fixture(scope="session")
def backlog(request: pytest.FixtureRequest) -> int:
    """The rows that wait at the first start in the tests of memory: 12,000,000, or those of ``--backlog``."""
    return request.config.getoption("--backlog")


@pytest.fixture(scope="session")
def limit_gb(request: pytest.FixtureRequest) -> float:
    """The anonymous memory that these may take, in GB: 4, or what is given with ``--limit-gb``."""
    return request.config.getoption("--limit-gb")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one Spark of all tests of this process, made by wjoin.connect()."""
    settings = {
        "spark.master": "local[2]",
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }
    if (connector := find_jars("--cached")) is not None:
        # A Java process has one class path, and this one serves the tests of Kafka, too.
        settings["spark.driver.extraClassPath"] = f"{connector}/connector/*"
    session = wjoin.connect(**settings).spark
    yield session
    session.stop()


@pytest.fixture
def session(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator["wjoin.Session"]:
    """A new wjoin session on the shared Spark; what the test leaves behind there is removed after it."""
    before = spark.conf.getAll
    session = wjoin.connect(spark)
    session.context.settings.set("wjoin.state", request.config.getoption("--state"))
    yield session
    for query in spark.streams.active:
        query.stop()
    wjoin.disable(spark)
    declared = catalog_of(spark)
    for names in (declared.streams, declared.sinks, declared.statistics, declared.warned):
        names.clear()
    # To list them, spark.catalog.listTables() plans and runs a query.
    for name in filter(
        None, spark._jsparkSession.sessionState().catalog().getTempViewNames().mkString("\n").split("\n")
    ):
        spark.catalog.dropTempView(name)
    _restore_settings(spark, before)


def _restore_settings(spark: SparkSession, before: dict[str, str]) -> None:
    now = spark.conf.getAll
    for key in now.keys() - before.keys():
        spark.conf.unset(key)
    for key, value in before.items():
        if now.get(key) != value:
            spark.conf.set(key, value)


@pytest.fixture
def only_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Wait until no other process of the tests has a server of Spark Connect: all listen at the same port."""
    with (tmp_path_factory.getbasetemp().parent / "spark-connect.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
