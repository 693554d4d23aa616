"""Mutated requests at every door: what is answered is known, and good callers are answered meanwhile."""

import contextlib
import json
import random
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight
import pytest
from pyspark.sql import SparkSession

from tests.security.attacks import (
    MOST_MEMORY,
    answered,
    begin,
    connected,
    frame,
    half_request,
    looked_on,
    message,
    mutated,
    part,
    peak,
)
from tests.security.conftest import Attacked
from tests.security.listening import listening
from tests.security.test_embedded_spark import STRANGE, call_of_a_stranger
from tests.security.test_site_records import GOOD
from tests.sites.processes import SCHEMA, Process, Sites, stream_of, wait_for
from tests.tiers import tiers
from tests.web.shown import asked, batches, known
from wjoin.sites.client import SiteClient
from wjoin.sites.failures import unpacked
from wjoin.sites.held import ExtentAsked, HeldRange, Wanted, encode_wanted
from wjoin.sites.key_counts import CountsAsked
from wjoin.sites.protocol import RowsRequest, encode_request
from wjoin.sites.value_filter import ValueFilter
from wjoin.testing.waiting import free_ports
from wjoin.web.page_access import Address
from wjoin.web.page_server import bound

pytestmark = [pytest.mark.thorough, pytest.mark.slow]

JAVA_GROWS = 1_000_000_000
"""Bytes that Spark's process takes more at the most: a heap of 2 GB grows before it is collected."""

BUCKETS = ValueFilter.of_buckets(np.arange(0, 3000, 3), 12, "number")

KNOWN = ("broken", "schema", "lineage", "limit", "gone", "filter", "busy")


@dataclass(frozen=True)
class Door:
    """``attack`` sends a mutated request, ``watched`` has a good caller ask, ``check`` looks at the end."""

    attack: Callable[[random.Random], None]
    watched: Callable[[], contextlib.AbstractContextManager[None]]
    check: Callable[[], None]


def tickets(lineage: str) -> list[bytes]:
    """Return a good request of each kind."""
    columns = ("id", "name")
    wanted = Wanted("id", (HeldRange(0, 500), HeldRange(600, 700, 5)))
    filters = [*(ValueFilter.of(pa.array(each)) for each in ([1, 2, 3], ["row 1"])), BUCKETS]
    held = (encode_wanted(wanted, each.encode()) for each in filters)
    return [
        encode_request(RowsRequest("rows", "a", lineage, columns, 0, 1000)),
        encode_request(RowsRequest("full", "a", lineage, columns), b"4" + bytes(8) + bytes(400)),
        *(encode_request(RowsRequest("reduced", "a", lineage, columns), each) for each in held),
        encode_request(RowsRequest("probe", stop=100_000)),
    ]


def actions(lineage: str) -> list[tuple[str, bytes]]:
    """Return a good action of each kind."""
    told = {"stream": "a", "lineage": lineage, "name": "q", "read": 5, "floor": None}
    filters = [ValueFilter.of(pa.array(values)) for values in ([1, 2, 9], ["a", "bc"], range(5000))]
    filters.append(BUCKETS)
    plain = [("describe", {"stream": "a"}), ("next", {"stream": "a"}), ("consumer", told), ("status", {})]
    plain.append(("extent", asdict(ExtentAsked("a", lineage, 0, 1000, 5, 7))))
    plain.append(("counts", asdict(CountsAsked("a", lineage, "id", 0, 1000, 1 << 60, 7, 12, 4))))
    texts = [(kind, json.dumps(given).encode()) for kind, given in [*plain, ("release", {"name": "q"})]]
    return [*texts, *(("filter", each.encode()) for each in filters)]


def raw(lineage: str, token: str | None = None) -> list[bytes]:
    """Return good requests as bytes of HTTP/2."""
    body = tickets(lineage)[0]
    ticket = b"\x0a" + bytes([0x80 | len(body) & 0x7F, len(body) >> 7]) + body
    whole = begin(token=token) + frame(0, 1, 1, message(len(ticket)) + ticket)
    two = whole + begin(3, token=token) + part(3, message(5)) + frame(0, 1, 3, b"\x0a\x03abc")
    return [
        whole,
        two,
        half_request(50_000, 20_000, token=token),
        two + frame(8, 0, 0, bytes(4)) + frame(6, 0, 0, bytes(8)),
    ]


def at_site(chance: random.Random, site: Attacked, client: flight.FlightClient) -> None:
    """Send a mutated request of any kind to a site."""
    address = site.address
    headers = [] if address.token is None else [(b"authorization", b"Bearer " + address.token.encode())]
    options = flight.FlightCallOptions(timeout=20, headers=headers)
    what = chance.randrange(3)
    try:
        if what == 0:
            ticket = mutated(chance, chance.choice(tickets(site.lineage)))
            client.do_get(flight.Ticket(ticket), options).read_all()
        elif what == 1:
            kind, body = chance.choice(actions(site.lineage))
            list(client.do_action(flight.Action(kind, mutated(chance, body)), options))
        else:
            token = chance.choice((None, address.token))
            with connected(site.url, address.certificate) as where:
                where.sendall(mutated(chance, chance.choice(raw(site.lineage, token))))
                where.settimeout(0.005)
                with contextlib.suppress(OSError):
                    where.recv(1000)
    except flight.FlightError as error:
        found = unpacked(error.extra_info, site.url)
        assert found is not None and found.kind in KNOWN, error
    except pa.ArrowException as error:
        # A mutated compression or column is answered with rows that are none.
        assert "could not answer" not in str(error)
    except OSError:
        # It was cut.
        assert what == 2


def door_of(site: Attacked) -> Iterator[Door]:
    def check() -> None:
        with SiteClient(site.address) as known_one:
            assert known_one.streams() == ("a",)
        assert "could not answer" not in site.site.log()
        assert "Traceback" not in site.site.log()

    roots = None if site.address.certificate is None else site.address.certificate.encode()
    with flight.FlightClient(site.url, tls_root_certs=roots) as client:
        yield Door(
            lambda chance: at_site(chance, site, client),
            lambda: looked_on(site.site, site.address, site.lineage),
            check,
        )


@pytest.fixture
def site_door(open_site: Attacked) -> Iterator[Door]:
    yield from door_of(open_site)


@pytest.fixture
def tls_door(closed_site: Attacked) -> Iterator[Door]:
    yield from door_of(closed_site)


def sent_to(port: int, data: bytes) -> bytes:
    """Send bytes and no more; return how the answer begins, nothing where there is none."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5) as where:
        where.sendall(data)
        where.shutdown(socket.SHUT_WR)
        return where.recv(65_536)
    return b""


def at_http(chance: random.Random, port: int, paths: tuple[str, ...]) -> None:
    """Send a mutated request of HTTP."""
    verb = chance.choice(("GET", "GET", "HEAD", "POST"))
    head = f"{verb} {chance.choice(paths)} HTTP/1.1\r\nHost: localhost:{port}\r\n"
    more = "Authorization: Bearer x\r\nAccept: */*\r\nContent-Length: 5\r\n\r\nhello"
    answer = sent_to(port, mutated(chance, (head + more).encode()))
    status, _, body = answer.partition(b"\r\n")
    # A request without a version is answered as of old, with a text alone.
    assert not answer or not status.startswith(b"HTTP/") or status[9:12] in STATUS, answer
    assert b"Traceback" not in body


STATUS = (b"200", b"400", b"401", b"403", b"404", b"408", b"414", b"431", b"501", b"503", b"505")


@pytest.fixture
def metrics_door(tmp_path: Path) -> Iterator[Door]:
    started: list[Process] = []
    (port,) = free_ports(1)
    head = f'metrics = "127.0.0.1:{port}"\nmemory = "256 MB"\n'
    site = Sites(tmp_path, started).start(stream_of(tmp_path / "in"), head=head)

    def good() -> None:
        answer = sent_to(port, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert answer.startswith(b"HTTP/1.0 200 ")

    def check() -> None:
        assert "Traceback" not in site.log()

    yield Door(
        lambda chance: at_http(chance, port, ("/metrics", "/", "/x?a=%20")), lambda: answered(good), check
    )
    for each in started:
        each.end()


@pytest.fixture
def page_door(capfd: pytest.CaptureFixture[str]) -> Iterator[Door]:
    paths = (
        *("/", "/live.js", "/metrics", "/api/queries", "/api/queries/run-of-pairs/plan"),
        "/api/queries/run-of-pairs?since=1&width=1&token=%C3%B6",
    )
    queries = [known(reports=batches(10))]
    with bound(Address(port=0), None).begin(lambda: queries, lambda: None) as web:

        def good() -> None:
            for path in paths:
                assert asked(web, path).status == 200

        def check() -> None:
            assert "Traceback" not in capfd.readouterr().err

        yield Door(lambda chance: at_http(chance, web.port, paths), lambda: answered(good), check)


RECORDS = f"{SCHEMA}, tags ARRAY<BIGINT>, day DATE, cost DECIMAL(10, 2)"
"""Columns of a stream whose records are mutated."""


def of_records(
    site: Process, write: Callable[[bytes], None], flush: Callable[[], object], sent: int = 0
) -> Door:
    """Return the door of a site's source, into which somebody writes records; ``sent`` are there."""
    client = site.client()
    more = b', "tags": [1, null, 2], "day": "2026-01-01", "cost": "1.25", "of": {"it": [{"p": null}]}}'
    good = (GOOD, GOOD[:-1] + more, b'{"ts": 1700000000.5, "id": null, "name": "\xc3\xa4"}', b"null")

    def attack(chance: random.Random) -> None:
        nonlocal sent
        for _ in range(chance.choice((1, 2, 50))):
            record = mutated(chance, chance.choice(good)).replace(b"\n", b" ")
            write(record)
            sent += bool(record.strip())
        flush()

    def check() -> None:
        def taken() -> int:
            told = client.status()["streams"][0]
            return int(told["next"] + told["broken"])

        wait_for(lambda: taken() >= sent)
        assert taken() == sent
        print(f"{sent} records")
        facts = client.describe("a")
        for block in client.rows("a", facts.lineage, facts.first, facts.next, facts.schema.names):
            block.validate(full=True)
        assert peak(site.process.pid) < MOST_MEMORY
        assert "again in" not in site.log() and "Traceback" not in site.log()

    return Door(attack, lambda: answered(client.status), check)


@pytest.fixture
def lines_door(tmp_path: Path) -> Iterator[Door]:
    """The standard input of a site."""
    started: list[Process] = []
    config = f'[streams.a]\nsource = "-"\ntime = "ts"\nwindow_rows = 100000\nschema = "{RECORDS}"\n'
    site = Sites(tmp_path, started).start(config, head='memory = "256 MB"', stdin=True)
    pipe = site.process.stdin
    assert pipe is not None
    yield of_records(site, lambda record: pipe.write(record + b"\n"), pipe.flush)
    for each in started:
        each.end()


def of_java(spark: SparkSession, ports: list[int], good: list[bytes]) -> Door:
    """Return the door of some ports of Spark's process, at which only who has a secret is heard."""
    java = spark._jvm.java.lang.ProcessHandle.current().pid()
    assert spark.range(3).count() == 3
    before = peak(java)

    def attack(chance: random.Random) -> None:
        noise = chance.randbytes(chance.randrange(1, 2_000))
        data = chance.choice((noise, mutated(chance, chance.choice(good))))
        answer = sent_to(chance.choice(ports), data)
        # py4j says that something has been done, or Spark that it has looked for a class.
        assert not answer.startswith(b"!y"), data
        assert STRANGE.encode() not in answer, data

    def ask() -> None:
        assert spark._jvm.java.lang.Math.abs(-3) == 3
        assert spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() == 1

    def check() -> None:
        assert spark.range(3).count() == 3
        print(f"{(peak(java) - before) / 1e6:.0f} MB more")
        assert peak(java) - before < JAVA_GROWS

    return Door(attack, lambda: answered(ask), check)


@pytest.fixture
def bridge_door(spark: SparkSession) -> Iterator[Door]:
    """The servers for Python: that of this process, and one as the planner for other Sparks has it."""
    server = spark._jvm.org.apache.spark.api.python.Py4JServer(spark.sparkContext._jsc.sc().conf())
    server.start()
    ports = [spark.sparkContext._gateway.gateway_parameters.port, server.getListeningPort()]
    calls = [
        b"c\nz:java.lang.System\nexit\ni1\ne\n",
        b"c\nwjoin-work\nnext\ne\n",
        b"i\njava.io.File\nsx\ne\n",
        b"r\nu\njava.lang.Runtime\nrj\ne\n",
        b"m\nd\no1\ne\n",
        b"s\ngb\n",
    ]
    yield of_java(spark, ports, [*calls, *(b"A\nsecret\n" + each for each in calls)])
    server.shutdown()


@pytest.fixture
def spark_door(spark: SparkSession) -> Door:
    """The driver's port and that of its blocks."""
    java = spark._jvm.java.lang.ProcessHandle.current().pid()
    driver = int(spark.sparkContext.getConf().get("spark.driver.port"))
    python = spark.sparkContext._gateway.gateway_parameters.port
    ports = [port for _, port in listening(java) if port != python]
    assert driver in ports and len(ports) >= 2
    sasl = b"\xea" + (10).to_bytes(4) + b"sparkSaslU" + (5).to_bytes(4) + b"hello"
    framed = [(len(body) + 8).to_bytes(8) + body for body in (sasl, b"\x03" + bytes(12) + sasl)]
    return of_java(spark, ports, [call_of_a_stranger(driver), *framed])


def mutate(door: Door, seconds: float) -> None:
    """Attack a door for some seconds."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    count = 0
    with door.watched():
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            door.attack(chance)
            count += 1
    door.check()
    print(f"{count} requests")


def seconds_of(span: str, config: pytest.Config) -> float:
    """Return how long an attack takes that takes ``seconds``, or ``minutes``."""
    return 3 if span == "seconds" else 60 * config.getoption("--minutes")


@pytest.mark.parametrize(
    "name",
    [
        *("site", "tls", "metrics", "page", "lines"),
        *(pytest.param(each, marks=pytest.mark.spark) for each in ("bridge", "spark")),
    ],
)
@pytest.mark.parametrize("span", tiers(["seconds", "minutes"], long=["seconds"]))
@pytest.mark.timeout(3600)
def test_mutated_requests(request: pytest.FixtureRequest, name: str, span: str) -> None:
    mutate(request.getfixturevalue(f"{name}_door"), seconds_of(span, request.config))
