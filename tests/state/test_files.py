"""State in files: attempts that die, run at once or come too late, restarts, damage, and a full disk."""

import contextlib
import json
import random
import resource
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wjoin.executor.state.manifest import Manifest, decode_manifest
from wjoin.executor.state.slices import Slice
from wjoin.executor.state.starting import STATE, begin, resume
from wjoin.executor.state.worker_files import WorkerFiles, numbers, worker_folder
from wjoin.executor.state.writing import FIRST_CUTTING
from wjoin.grammar.errors import WJoinError

Rows = Counter[int]

JOINS = {"0": [1]}


def attempt(checkpoint: Path, number: int, history: str, order: random.Random) -> Iterator[None]:
    """Work for a micro-batch step by step: keep all slices but one, and two new ones, rows in any order."""
    state = WorkerFiles(folder_of(checkpoint), number)
    yield
    before = decoded(state.manifest())
    kept = [each for each in before.slices[0] if int(each.name) % 3 != number % 3 or number % 2]
    written = before.written
    for part in range(2):
        rows = rows_of(history, number, part)
        order.shuffle(rows)
        name = str(written)
        stored = state.save(name, pa.record_batch({"row": rows}), FIRST_CUTTING)
        kept.append(Slice(name, len(rows), stored.size, 0, 0, "key", stored.digest))
        written += 1
        yield
    after = Manifest("plan", 1, written, {0: number}, (tuple(kept),))
    state.commit(after.encode())
    yield


def rows_of(history: str, number: int, part: int) -> list[int]:
    chance = random.Random(f"{history} {number} {part}")
    return [chance.randrange(1_000_000) for _ in range(5)]


def decoded(stored: bytes | None) -> Manifest:
    return Manifest.fresh("plan", 1, 1) if stored is None else decode_manifest(stored, "plan", 1)


def folder_of(checkpoint: Path) -> Path:
    return worker_folder(checkpoint / STATE / "0" / "0", 0)


def kept_rows(checkpoint: Path, number: int) -> Rows:
    """What the state holds after a micro-batch."""
    state = WorkerFiles(folder_of(checkpoint), number + 1)
    slices = decoded(state.manifest()).slices[0]
    return Counter(row for each in slices for row in state.load(each).column(0).to_pylist())


@dataclass
class Query:
    """The log of a query as Spark writes it; ``histories``: what data each micro-batch had."""

    checkpoint: Path
    histories: list[str] = field(default_factory=list)

    def offer(self, history: str) -> int:
        """Write down that a micro-batch begins."""
        self.histories.append(history)
        return self._note("offsets")

    def commit(self) -> None:
        self._note("commits")

    def _note(self, log: str) -> int:
        (self.checkpoint / log).mkdir(exist_ok=True)
        number = len(self.histories) - 1
        (self.checkpoint / log / str(number)).touch()
        return number

    def rewind(self) -> None:
        """Take back the last micro-batch, as one may by hand."""
        last = len(self.histories) - 1
        for log in ("offsets", "commits"):
            (self.checkpoint / log / str(last)).unlink()
        self.histories.pop()

    @property
    def rows(self) -> Rows:
        """What the state must hold: all that happened to slices of the micro-batches before."""
        slices: list[tuple[int, list[int]]] = []
        written = 0
        for number, history in enumerate(self.histories):
            slices = [each for each in slices if each[0] % 3 != number % 3 or number % 2]
            for part in range(2):
                slices.append((written, rows_of(history, number, part)))
                written += 1
        return Counter(row for _, rows in slices for row in rows)


@given(st.randoms(use_true_random=False))
def test_any_attempts_leave_the_state_of_one(chance: random.Random) -> None:
    with TemporaryDirectory() as name:
        query = Query(Path(name))
        begin(query.checkpoint, JOINS)
        late: list[Iterator[None]] = []
        for _ in range(chance.randint(1, 8)):
            number = query.offer(chance.choice("xy"))
            for _ in range(chance.choice([0, 0, 1, 2])):
                # An attempt dies, or is slow: it goes on when others are done.
                lost = attempt(query.checkpoint, number, query.histories[-1], chance)
                for _ in range(chance.randint(0, 3)):
                    next(lost)
                late.append(lost)
                if chance.random() < 0.3:
                    resume(query.checkpoint, JOINS)
            running = [
                attempt(query.checkpoint, number, query.histories[-1], chance)
                for _ in range(chance.choice([1, 1, 2]))
            ]
            while running:
                each = chance.choice(running)
                if next(each, "done") == "done":
                    running.remove(each)
            assert kept_rows(query.checkpoint, number) == query.rows
            query.commit()
            if late and chance.random() < 0.5:
                # What it has written may be gone, and then it fails; nobody waits for it any more.
                with contextlib.suppress(WJoinError, FileNotFoundError):
                    list(late.pop(chance.randrange(len(late))))
            if number and chance.random() < 0.2:
                query.rewind()
                late.clear()
                resume(query.checkpoint, JOINS)
                assert kept_rows(query.checkpoint, number - 1) == query.rows
            assert kept_rows(query.checkpoint, len(query.histories) - 1) == query.rows


@pytest.fixture
def query(tmp_path: Path) -> Query:
    """A query after five micro-batches."""
    query = Query(tmp_path)
    begin(tmp_path, JOINS)
    for _ in range(5):
        run(query)
    return query


def run(query: Query, history: str = "x") -> None:
    number = query.offer(history)
    list(attempt(query.checkpoint, number, history, random.Random(1)))
    query.commit()


def test_what_is_spent_is_removed(query: Query) -> None:
    for _ in range(20):
        run(query)
    last = numbers(folder_of(query.checkpoint))
    assert last == [22, 23, 24]
    needed = {
        f"{each.name}-{each.digest}.slice"
        for number in last
        for each in decoded(WorkerFiles(folder_of(query.checkpoint), number + 1).manifest()).slices[0]
    }
    assert {each.name for each in folder_of(query.checkpoint).glob("*.slice")} == needed


def test_files_are_the_users_own(query: Query) -> None:
    assert folder_of(query.checkpoint).stat().st_mode & 0o777 == 0o700


def test_a_query_goes_back_by_one_micro_batch_and_no_further(query: Query) -> None:
    query.rewind()
    resume(query.checkpoint, JOINS)
    assert kept_rows(query.checkpoint, 3) == query.rows
    run(query, "y")
    assert kept_rows(query.checkpoint, 4) == query.rows
    for _ in range(3):
        query.rewind()
    with pytest.raises(WJoinError, match="WJ719") as raised:
        resume(query.checkpoint, JOINS)
    assert "the state after micro-batch 1 is no longer in" in raised.value.message
    assert "the oldest there is that after micro-batch 2" in raised.value.message
    assert numbers(folder_of(query.checkpoint)) == [2, 3, 4], "nothing is lost by trying"


def test_a_repeated_micro_batch_keeps_the_manifest_of_its_first_attempt(query: Query) -> None:
    number = query.offer("x")
    list(attempt(query.checkpoint, number, "x", random.Random(1)))
    first = (folder_of(query.checkpoint) / "5.manifest").read_bytes()
    resume(query.checkpoint, JOINS)
    list(attempt(query.checkpoint, number, "x", random.Random(2)))
    assert (folder_of(query.checkpoint) / "5.manifest").read_bytes() == first
    assert kept_rows(query.checkpoint, number) == query.rows


def newest_slice(query: Query) -> Path:
    last = decoded(WorkerFiles(folder_of(query.checkpoint), 5).manifest()).slices[0][-1]
    return folder_of(query.checkpoint) / f"{last.name}-{last.digest}.slice"


def test_a_missing_folder_is_told_before_anything_runs(query: Query) -> None:
    folder_of(query.checkpoint).rename(query.checkpoint / "elsewhere")
    with pytest.raises(WJoinError, match="WJ719"):
        resume(query.checkpoint, JOINS)


def test_a_missing_manifest_of_one_worker_is_told(tmp_path: Path) -> None:
    query, joins = Query(tmp_path), {"0": [2]}
    begin(tmp_path, joins)
    run(query)
    with pytest.raises(WJoinError, match=r"WJ719[\s\S]*0.manifest, a file of the state, is missing"):
        resume(tmp_path, joins)


@pytest.mark.parametrize("harm", ["cut", "missing"])
def test_a_slice_that_is_not_whole_is_told_before_anything_runs(query: Query, harm: str) -> None:
    path = newest_slice(query)
    if harm == "cut":
        path.write_bytes(path.read_bytes()[:-8])
    else:
        path.unlink()
    with pytest.raises(WJoinError, match="WJ719") as raised:
        resume(query.checkpoint, JOINS)
    assert str(path) in raised.value.message
    with pytest.raises(WJoinError, match="WJ719"):
        kept_rows(query.checkpoint, 4)


def test_changed_bytes_of_a_slice_are_told(query: Query) -> None:
    path = newest_slice(query)
    body = bytearray(path.read_bytes())
    body[len(body) // 2] ^= 1
    path.write_bytes(body)
    with pytest.raises(WJoinError, match=r"WJ719[\s\S]*has other content than was written"):
        kept_rows(query.checkpoint, 4)


@pytest.mark.parametrize("form", ["another manifest", "nothing", "not text"])
def test_a_changed_manifest_is_told(query: Query, form: str) -> None:
    path = folder_of(query.checkpoint) / "4.manifest"
    head, _, body = path.read_bytes().partition(b"\n")
    changed = json.dumps({**json.loads(body), "written": 99}).encode()
    path.write_bytes(
        {"another manifest": head + b"\n" + changed, "nothing": b"", "not text": b"\xff\n"}[form]
    )
    with pytest.raises(WJoinError, match="WJ719"):
        resume(query.checkpoint, JOINS)


def test_a_full_disk_loses_nothing(query: Query) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    number = query.offer("x")
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(WJoinError, match=r"WJ718[\s\S]*cannot be written to"):
            list(attempt(query.checkpoint, number, "x", random.Random(1)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list(folder_of(query.checkpoint).glob("*.unfinished"))
    list(attempt(query.checkpoint, number, "x", random.Random(1)))
    assert kept_rows(query.checkpoint, number) == query.rows


def test_what_a_query_left_that_never_began_is_removed(query: Query) -> None:
    begin(query.checkpoint, JOINS)
    assert numbers(folder_of(query.checkpoint)) == []
