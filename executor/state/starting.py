"""State in files before a query starts: its folders are made, or compared with what Spark has committed."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from wjoin.executor.state.manifest import written_manifest
from wjoin.executor.state.worker_files import (
    damaged,
    numbers,
    read_manifest,
    slice_file,
    stage_folder,
    worker_folder,
)
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.plurals import counted

STATE = "wjoin/state"
"""Where the state lies below a checkpoint."""


SHED = "shed"
"""Where the decisions lie of what is shed, below the state of a join."""

Joins = Mapping[str, Sequence[int]]
"""The names of the folders of the joins of a query, and the workers of the stages of each."""


def begin(checkpoint: Path, joins: Joins) -> None:
    """Make the folders of the state of a new query.

    What lies there of a query that never began is removed. Raises OSError.
    """
    shutil.rmtree(checkpoint / STATE, ignore_errors=True)
    for folder in _folders(checkpoint, joins):
        folder.mkdir(mode=0o700, parents=True)


def resume(checkpoint: Path, joins: Joins) -> None:
    """Compare the state with the last micro-batch that Spark has committed, and take back what is later.

    What is later is kept where Spark repeats that micro-batch with the same rows: then it is the same. Raises
    WJoinError WJ719 where files of the state are missing.
    """
    for path in (each for join in joins for each in (checkpoint / STATE / join / SHED).glob("[0-9]*")):
        # What is measured from it begins anew.
        path.touch()
    known = {folder: numbers(folder) for folder in _folders(checkpoint, joins)}
    committed = max(_entries(checkpoint / "commits"), default=-1)
    repeated = committed + 1 in _entries(checkpoint / "offsets")
    for join, stages in joins.items():
        for stage, workers in enumerate(stages):
            own = stage_folder(checkpoint / STATE / join, stage)
            folders = [worker_folder(own, place) for place in range(workers)]
            last = {folder: _last(folder, known[folder], committed) for folder in folders}
            newest = max(last.values(), key=lambda number: -1 if number is None else number)
            for folder, number in last.items():
                if number != newest:
                    raise damaged(folder / f"{newest}.manifest", "is missing")
                if number is not None:
                    _check(folder, number)
                for later in known[folder]:
                    if later > committed and not (repeated and later == committed + 1):
                        (folder / f"{later}.manifest").unlink(missing_ok=True)


def _folders(checkpoint: Path, joins: Joins) -> list[Path]:
    return [
        worker_folder(stage_folder(checkpoint / STATE / join, stage), place)
        for join, stages in joins.items()
        for stage, workers in enumerate(stages)
        for place in range(workers)
    ]


def _last(folder: Path, known: Sequence[int], committed: int) -> int | None:
    """Return the last manifest up to a micro-batch, None where the worker had nothing yet.

    Raises WJoinError WJ719 where it had something that is no longer there.
    """
    before = [each for each in known if each <= committed]
    if before:
        return before[-1]
    if known and read_manifest(folder, known[0]).before is not None:
        last = "the last micro-batch" if committed < 0 else f"micro-batch {committed}"
        raise WJoinError(
            "WJ719",
            f"the state after {last} is no longer in {folder}: the oldest there is that after micro-batch "
            f"{known[0]}",
            help="a query can go back by one micro-batch; to go further, start from a copy of the checkpoint",
        )
    return None


def _check(folder: Path, number: int) -> None:
    """Raise WJoinError WJ719 where a slice that a manifest names is missing, or has another size."""
    for each in written_manifest(read_manifest(folder, number).body).all_slices:
        path = folder / slice_file(each.name, each.digest)
        if not path.is_file():
            raise damaged(path, "is missing")
        if path.stat().st_size != each.size:
            raise damaged(path, f"has {counted(path.stat().st_size, 'byte')} instead of {each.size:,}")


def _entries(log: Path) -> list[int]:
    """Return the numbers of the micro-batches in a log of Spark's."""
    return [int(each.name) for each in log.iterdir() if each.name.isdecimal()] if log.is_dir() else []
