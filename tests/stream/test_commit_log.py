"""What is kept of a sink's commits, in simulated time: Spark's log compacts, forgets and deletes entries.

It does so by the rules of Spark's CompactibleFileStreamLog; the files are real ones.
"""

import json
import os
import random
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import pytest
from pyspark.sql import SparkSession

from wjoin.results.commit_log import LOG, CommitLog
from wjoin.results.commits import Commit, KeptResults, Results
from wjoin.results.results_keeper import ResultsKeeper
from wjoin.sources.sink_retention import Retention
from wjoin.spark.hadoop_files import Files


def path_of(line: str) -> Path:
    return Path(json.loads(line)["path"].removeprefix("file://").replace("%20", " "))


@dataclass
class Sink:
    """A folder that Spark's file sink writes, on a clock of its own, and who reads it."""

    folder: Path
    chance: random.Random
    times: Retention
    interval: int
    entries: int
    now: int = 1_700_000_000_000
    written: dict[str, int] = field(default_factory=dict)
    commits: list[Commit] = field(default_factory=list)
    readers: list[tuple[int, set[Path]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        (self.folder / LOG).mkdir(parents=True)

    def commit(self) -> None:
        """Write the files of a micro-batch, and its entry of the log."""
        number, new = len(self.commits), []
        for part in range(self.chance.randint(0, 3)):
            path = self.folder / f"part-{number}-{part}"
            path.touch()
            new.append(json.dumps({"path": f"file://{quote(str(path))}", "modificationTime": self.now}))
            self.written[new[-1]] = self.now
            self.now += self.chance.randint(0, 50)
        compact = (number + 1) % self.interval == 0
        if compact:
            before = range(max(0, number - self.interval), number)
            entries = [line for each in before for line in self.entry(each)]
            lines = [each for each in [*entries, *new] if self.now - self.written[each] <= self.times.logged]
        entry = self.folder / LOG / (f"{number}.compact" if compact else str(number))
        entry.write_text("\n".join(["v1", *(lines if compact else new)]))
        os.utime(entry, ns=(self.now * 1_000_000,) * 2)
        last = self.commits[-1].at if self.commits else 0
        self.commits.append(Commit(number, max(self.now, last + 1), tuple(new), compact))
        self._delete(number)

    def _delete(self, number: int) -> None:
        """Delete entries before the compact one that is old enough."""
        if self.interval <= number + 1 - self.entries:
            oldest = number + 1 - self.entries
            first = oldest - oldest % self.interval - 1
            for each in (self.folder / LOG).iterdir():
                if int(each.name.split(".")[0]) < first:
                    each.unlink()

    def entry(self, number: int) -> list[str]:
        plain = self.folder / LOG / str(number)
        found = plain if plain.exists() else plain.with_name(f"{number}.compact")
        return found.read_text().split("\n")[1:]

    def named(self) -> list[str]:
        """Return the files that a reader of Spark's finds now, as lines."""
        newest = len(self.commits) - 1
        first = max(0, (newest + 1) // self.interval * self.interval - 1)
        return [line for number in range(first, newest + 1) for line in self.entry(number)]


def check(sink: Sink, results: Results) -> None:
    """Compare the commits that are there with those that were made, and see that readers have their files."""
    made = {each.number: each for each in sink.commits}
    for each in results.commits:
        if each.whole:
            assert each == made[each.number]
    numbers = [each.number for each in results.commits]
    assert numbers == sorted(set(numbers))
    newest = sink.commits[-1]
    assert results.commits[-1].at == newest.at
    found = {line for each in results.retained for line in each.lines}
    for each in sink.commits:
        if each.at >= newest.at - sink.times.time:
            assert found >= set(each.lines), f"{each.number} is kept"
    for lines in (found, sink.named()):
        assert [line for line in lines if not path_of(line).exists()] == []
    sink.readers.append((sink.now, {path_of(line) for line in [*found, *sink.named()]}))
    for began, files in sink.readers:
        if sink.now <= began + sink.times.grace:
            assert [str(each) for each in files if not each.exists()] == []
    asked(sink, results)


def asked(sink: Sink, results: Results) -> None:
    """Ask for commits between times: they are all there, or it is told that some are gone."""
    ends = [1000 * (sink.commits[-1].at - sink.chance.randint(-500, 2 * sink.times.time)) for _ in range(2)]
    first, last = min(ends), max(ends)
    between = [each for each in sink.commits if first <= 1000 * each.at <= last]
    found = results.selected(first, last)
    assert found is None or [each for each in found if each.lines] == [each for each in between if each.lines]
    if first > 1000 * (sink.commits[-1].at - sink.times.time) and all(each.whole for each in results.commits):
        assert found is not None
    begin = sink.commits[-1].at - sink.times.time
    upto = [each for each in sink.commits if each.at >= begin and 1000 * each.at <= last]
    found = results.selected(None, last)
    if found is not None:
        lines = {line for each in found for line in each.lines}
        assert lines >= {line for each in upto for line in each.lines}
        late = {line for each in sink.commits if 1000 * each.at > last for line in each.lines}
        assert lines.isdisjoint(late)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(24))
def test_commits_are_kept_as_long_as_they_should_be(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    times = Retention(chance.randint(2_000, 20_000), chance.randint(500, 8_000))
    # Where Spark keeps few entries, and who notes commits is late, it has forgotten which were which.
    interval, entries = chance.randint(1, 5), chance.choice([2, 10, 30])
    sink = Sink(tmp_path / "a b", chance, times, interval, entries)
    log = CommitLog(Files.of(spark), str(sink.folder))
    log.keep(KeptResults(times, "{}", sink.now))
    assert (log.kept or KeptResults(times, "", 0)).times == times

    def keeper() -> ResultsKeeper:
        return ResultsKeeper(
            "sink", log, log.kept or KeptResults(times, "", 0), max(1, entries // 2), lambda: sink.now
        )

    running, lazy = keeper(), chance.random() < 0.3
    for _ in range(40):
        sink.now += chance.choice([1, 100, 1_000, 3_000])
        sink.commit()
        if chance.random() < (0.2 if lazy else 0.9):
            running.end()
        if chance.random() < 0.1:
            running = keeper()
        if chance.random() < 0.3:
            results = log.results()
            assert results is not None
            check(sink, results)
    old = [path_of(line) for each in sink.commits for line in each.lines]
    for _ in range(4 * interval + entries):
        sink.now += times.logged + times.grace + 2_000
        sink.commit()
        running.end()
    left = [each for each in old if each.exists()]
    assert left == [], f"{len(left)} of {len(old)} files are left"
    results = log.results()
    assert results is not None
    check(sink, results)
