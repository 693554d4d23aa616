"""A checkpoint into which somebody else has written: nothing of it is run, no file beside it touched."""

import json
import pickle
import random
import re
from pathlib import Path
from typing import Any

import pytest

from tests.packages import ROOT
from wjoin.executor.sites.ranges import HeldRows
from wjoin.executor.spark.cache import SliceCache
from wjoin.executor.state.manifest import Manifest, decode_manifest, written_manifest
from wjoin.executor.state.slices import Slice
from wjoin.executor.state.writing import FIRST_CUTTING, Writing
from wjoin.grammar.errors import WJoinError
from wjoin.measured.begun import BegunJoin
from wjoin.planner.plan.stage_kinds import Retention

SLICE = Slice("3", 5, 100, 1, 2, "key", "0123456789abcdef" * 2, 1, "zstd")
WRITING = Writing(("key", "key"), ((Retention(0, ((0, 5), (1, None))),), ()), FIRST_CUTTING)
MANIFEST = Manifest("plan", 2, 4, {0: 7, 1: -3}, ((SLICE,), ()), WRITING, ((HeldRows(0, 1, 5, None, 9),), ()))

HUGE = 1 << 80


class Planted:
    """What runs when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path("planted"),)


def test_nothing_is_unpickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    data = pickle.dumps(Planted())
    with pytest.raises(WJoinError, match="WJ701"):
        decode_manifest(data, "plan", 2)
    with pytest.raises(WJoinError, match="WJ701"):
        written_manifest(data)
    assert not Path("planted").exists()
    pickle.loads(data)
    assert Path("planted").exists(), "the attack works where something is unpickled"


def test_what_unpickles_has_pickled_it_itself():
    """Only the operator of a processor is, which Spark has brought from the driver."""
    unpickling = re.compile(r"\b(?:pickle|cloudpickle|dill|joblib|marshal|shelve)\.(?:loads?|Unpickler)\b")
    layers = ("wjoin", "executor", "planner", "parts", "grammar", "udfs", "sites")
    files = [file for layer in layers for file in (ROOT / layer).rglob("*.py")]
    assert len(files) > 300
    found = [str(file.relative_to(ROOT)) for file in files if unpickling.search(file.read_text("utf-8"))]
    assert found == ["executor/spark/processor.py"]


@pytest.mark.parametrize(
    "digest",
    ["00000000/../../../precious", "/precious", "..", "0" * 31 + "/", "0" * 31 + "\n", "", 7],
)
def test_no_file_is_removed_or_read_that_a_manifest_names(tmp_path: Path, digest: Any):
    """The copies of slices on a worker's disk are named by their digests."""
    body = json.loads(MANIFEST.encode())
    body["slices"][0][0]["digest"] = digest
    with pytest.raises(WJoinError, match="WJ701"):
        decode_manifest(json.dumps(body).encode(), "plan", 2)


def test_such_a_digest_would_remove_a_file(tmp_path: Path):
    (tmp_path / "local" / "wjoin-slices" / "00000000").mkdir(parents=True)
    (tmp_path / "precious").write_text("mine")
    SliceCache([tmp_path / "local" / "wjoin-slices"]).remove("00000000/../../../precious")
    assert not (tmp_path / "precious").exists(), "so the attack that is refused above is one"


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("written",), -1),
        (("written",), "4"),
        (("workers",), HUGE),
        (("workers",), 3),
        (("seen",), {"0": HUGE}),
        (("seen",), [7]),
        (("slices", 0, 0, "pieces"), 1 << 40),
        (("slices", 0, 0, "pieces"), 0),
        (("slices", 0, 0, "rows"), HUGE),
        (("slices", 0, 0, "size"), -5),
        (("slices", 0, 0, "size"), True),
        (("slices", 0, 0, "earliest"), 1.5),
        (("slices", 0, 0, "compression"), "/bin/sh"),
        (("slices", 0, 0, "more"), 1),
        (("slices", 0), {"a": 1}),
        (("writing", "cutting", "piece"), 0),
        (("writing", "cutting", "merged_at_once"), 0),
        (("writing", "cutting", "dead_share"), "much"),
        (("writing", "cutting", "compression"), "none such"),
        (("writing", "cutting", "piece"), None),
        (("writing",), 5),
        (("held", 0, 0, "site"), -1),
        (("held", 0, 0, "stop"), 0),
        (("held", 0, 0), [0, 5]),
    ],
)
def test_what_no_worker_has_written_is_refused(place: tuple[Any, ...], value: Any):
    body = json.loads(MANIFEST.encode())
    inner = body
    for each in place[:-1]:
        inner = inner[each]
    inner[place[-1]] = value
    code = "WJ703" if (place, value) == (("workers",), 3) else "WJ701"
    with pytest.raises(WJoinError, match=code):
        decode_manifest(json.dumps(body).encode(), "plan", 2)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t AS SELECT 1 FROM a, b WINDOW = 5",
        "WITH c AS (SELECT 1) SELECT 1 FROM a, b WINDOW = 5",
        "SELECT 1 FROM a, b WINDOW = 5 WHERE a.v > 3 OR `REFLECT`('java.lang.System', 'exit', 1) = ''",
        "SELECT 1 FROM a, b WINDOW = 5 WHERE a.v > 3 OR java_method ('java.lang.System', 'exit', 1) = ''",
        "",
    ],
)
def test_a_text_is_planned_once_more_only_where_it_is_a_plain_select(text: str):
    assert not BegunJoin(text).plain
    assert BegunJoin("SELECT a.v FROM a, b WINDOW = 5 WHERE a.v > 3").plain


@pytest.mark.parametrize("data", [b"", b"[]", b"null", b"7", b'"a"', b"[" * 100_000, b"\x80\x04", b"{}"])
def test_what_is_no_manifest_is_refused(data: bytes):
    with pytest.raises(WJoinError, match="WJ701"):
        decode_manifest(data, "plan", 2)


def test_changed_manifests_are_read_or_refused():
    """Bytes are changed, cut out and doubled at random."""
    draw, written = random.Random(7), MANIFEST.encode()
    assert decode_manifest(written, "plan", 2) == MANIFEST
    refused = 0
    for _ in range(1_000):
        data = bytearray(written)
        for _ in range(draw.randint(1, 3)):
            place, stop = sorted(draw.choices(range(len(data)), k=2))
            match draw.randrange(3):
                case 0:
                    data[place] = draw.randrange(256)
                case 1:
                    del data[place : min(stop, place + 9)]
                case _:
                    data[place:place] = data[place:stop]
        try:
            decode_manifest(bytes(data), "plan", 2)
        except WJoinError as error:
            refused += 1
            assert error.code in ("WJ701", "WJ702", "WJ703")
    assert refused > 800
