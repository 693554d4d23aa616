"""Run cameras.sql on frames that it makes, as a stream and over tables, check what it finds, and time it.

    python examples/pictures/run.py

Every way to run the statement must find what comparing all frames inside the windows in NumPy finds. How
many of the combinations show one place is told as well: pictures of different places can be alike.
"""

import argparse
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from check import ALIKE, Check, Combination
from frames import CAMERAS, RATE, SIZE, write_frames
from sheet import write_sheet

import wjoin
from wjoin.progress import read


@dataclass(frozen=True)
class Found:
    """What one way to run the statement has found, in how many seconds, and what else is known of it."""

    combinations: list[Combination]
    seconds: float
    about: str = ""


class Runs:
    """The statement of cameras.sql on the frames of a folder."""

    def __init__(self, session: wjoin.Session, folder: Path, band: bool) -> None:
        self.session = session
        self.folder = folder
        text = (Path(__file__).parent / "cameras.sql").read_text("utf-8")
        for name in ("data", "out"):
            text = text.replace(f"'{name}/", f"'{folder}/{name}/")
        self.declared, _, select = text.partition("INSERT INTO same_scene")
        self.select = select.strip().removesuffix(";")
        if band:
            # Two means differ by no more than the bytes do on average, so no pair that is alike is lost.
            wide = (1 - ALIKE) * 255
            near = [f"abs({a}.brightness - {b}.brightness) <= {wide:.1f}" for a, b in ("AB", "BC")]
            self.select += f" AND {' AND '.join(near)}"

    def stream(self, plan: str) -> Found:
        """A query that works off the files one by one, from its start to its end."""
        self.session.run_script(self.declared)
        insert = f"INSERT INTO same_scene {self._hinted(plan)}"
        began = time.monotonic()
        try:
            (query,) = self.session.run_script(insert, checkpoint=str(self.folder / "checkpoints"))
            seconds = time.monotonic() - began
            rows = self.session.read.parquet(f"{self.folder}/out/same_scene").toArrow()
        finally:
            for name in ("out", "checkpoints"):
                shutil.rmtree(self.folder / name, ignore_errors=True)
        batches = [read(each) for each in query.recentProgress]
        compared = sum(each.comparisons for each in batches)
        kept = max(sum(each.state_rows.values()) for each in batches)
        bytes_kept = max(each.state_bytes for each in batches)
        about = f"{len(batches)} micro-batches, {compared:,} pairs compared"
        about += f", at most {kept:,} rows ({bytes_kept / 1e6:.1f} MB) kept"
        return Found(_combinations(rows), seconds, about)

    def tables(self, plan: str) -> Found:
        """The same SELECT over the same files as tables."""
        for name in CAMERAS:
            self.session.sql(f"DROP STREAM IF EXISTS {name}")
            self.session.read.parquet(f"{self.folder}/data/{name}").createOrReplaceTempView(name)
        began = time.monotonic()
        rows = self.session.sql(self._hinted(plan)).toArrow()
        seconds = time.monotonic() - began
        for name in CAMERAS:
            self.session.catalog.dropTempView(name)
        return Found(_combinations(rows), seconds)

    def _hinted(self, plan: str) -> str:
        hint = f"SELECT /*+ PLAN({plan}) */" if plan else "SELECT"
        return self.select.replace("SELECT", hint, 1)


def main() -> int:
    """Print what was found; 1 where a way to run the statement does not find what NumPy does."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scenes", type=int, default=400)
    parser.add_argument("--rate", type=float, default=RATE, help="scenes a second (%(default)s)")
    parser.add_argument("--plans", nargs="*", default=[], help="hints to run it with as well: PSP ATR")
    parser.add_argument("--band", action="store_true", help="with bands on brightness before the predicates")
    parser.add_argument("--repetitions", type=int, default=1, help="the fastest of each way counts")
    parser.add_argument("--sheet", type=Path, help="where to draw some of what was found (.webp, .png)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wjoin-pictures-") as folder:
        write_frames(Path(folder), given.scenes, given.rate)
        check = Check(Path(folder))
        frames = sum(len(seen.frames) for seen in check.seen)
        print(f"{frames:,} frames of {SIZE} x {SIZE} pixels have contrast")
        print(f"{len(check.one_place):,} combinations show one place, {len(check.alike):,} are alike,")
        print(f"{len(set(check.one_place) & set(check.alike)):,} are both", flush=True)
        session = wjoin.connect(**{"spark.master": "local[2]"})
        runs = Runs(session, Path(folder), given.band)
        wrong = _run_all(runs, ["", *given.plans], given.repetitions, check.alike)
        if given.sheet is not None:
            write_sheet(given.sheet, check)
    return int(wrong)


def _run_all(runs: Runs, plans: list[str], repetitions: int, wanted: list[Combination]) -> bool:
    """Print how each way went; return whether one found something else than it should."""
    best: dict[str, Found] = {}
    wrong = False
    for _ in range(repetitions):
        for plan in plans:
            for kind, run in (("stream", runs.stream), ("tables", runs.tables)):
                found = run(plan)
                wrong |= found.combinations != wanted
                name = f"{kind}, PLAN({plan})" if plan else kind
                best[name] = min(best.get(name, found), found, key=lambda each: each.seconds)
    for name, found in best.items():
        verdict = "as NumPy" if found.combinations == wanted else "NOT as NumPy"
        about = f"; {found.about}" if found.about else ""
        print(f"{name}: {len(found.combinations):,} combinations, {verdict}, {found.seconds:.1f} s{about}")
    return wrong


def _combinations(rows: pa.Table) -> list[Combination]:
    return sorted(zip(*(column.to_pylist() for column in rows.columns), strict=True))


if __name__ == "__main__":
    sys.exit(main())
