"""What Spark has written down in a checkpoint of its last micro-batch, of operators and of their state."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.plurals import counted
from wjoin.spark.hadoop_files import Files

PARTITIONS = "spark.sql.shuffle.partitions"
"""The setting that a checkpoint keeps for the life of its query."""


@dataclass(frozen=True)
class LastBatch:
    """The last micro-batch of a checkpoint, which is committed; ``settings`` are those that it keeps."""

    number: int
    settings: Mapping[str, str]

    @property
    def partitions(self) -> int:
        """The number of shuffle partitions."""
        return int(self.settings[PARTITIONS])


def last_batch(files: Files, folder: str) -> LastBatch:
    """Return the last micro-batch of a checkpoint.

    Raises WJoinError WJ708 where one has begun and is not committed, WJ710 where none has begun, and WJ711
    where its state has a form that is not known.
    """
    begun, done = (files.numbers(f"{folder}/{name}") for name in ("offsets", "commits"))
    if not begun:
        raise WJoinError("WJ710", f"the checkpoint {folder} has no micro-batch yet")
    if begun[-1:] != done[-1:]:
        raise WJoinError("WJ708", f"micro-batch {begun[-1]} of the checkpoint {folder} is not committed")
    _, body, *_ = files.read(f"{folder}/commits/{done[-1]}").split("\n")
    if json.loads(body).get("stateUniqueIds"):
        setting = "spark.sql.streaming.stateStore.checkpointFormatVersion"
        raise WJoinError("WJ711", f"the checkpoint {folder} was written with {setting} = 2")
    _, body, *_ = files.read(f"{folder}/offsets/{begun[-1]}").split("\n")
    return LastBatch(begun[-1], json.loads(body)["conf"])


def set_partitions(files: Files, folder: str, number: int, partitions: int) -> None:
    """Let the offsets of micro-batch ``number`` of a checkpoint say another number of shuffle partitions."""
    path = f"{folder}/offsets/{number}"
    version, body, *offsets = files.read(path).split("\n")
    told = json.loads(body)
    told["conf"][PARTITIONS] = str(partitions)
    files.write(path, "\n".join([version, json.dumps(told, separators=(",", ":")), *offsets]))
    # Newer versions of Spark may have put a checksum beside it, and read files without one.
    files.remove(f"{path}.crc")


def adopt_state(
    files: Files, written: str, to: str, *, operator: int, final: str, batch: int, partitions: int
) -> None:
    """Move the state of operator 0 after micro-batch 0 into a checkpoint, as that of another operator.

    ``written`` and ``to`` are folders of the state of one operator; ``final`` is where ``to`` will be. It
    becomes the state after micro-batch ``batch``: Spark counts it in the names of files only. Raises
    WJoinError WJ711 where Spark has not written it as it is known.
    """
    before = files.full(written)
    files.rename(written, to)
    if files.numbers(to) != list(range(partitions)):
        raise WJoinError("WJ711", f"Spark has not written {counted(partitions, 'partition')} to {to}")
    for partition in range(partitions):
        if "1.zip" not in files.names(f"{to}/{partition}"):
            raise WJoinError("WJ711", "this version of Spark names state files differently")
        files.remove(f"{to}/{partition}/1.changelog")
        if batch:
            files.rename(f"{to}/{partition}/1.zip", f"{to}/{partition}/{batch + 1}.zip")
    version, body = files.read(f"{to}/_metadata/v2/0").split("\n", 1)
    told = _relocated(json.loads(body), before, files.full(final))
    told["operatorInfo"]["operatorId"] = operator
    files.remove(f"{to}/_metadata/v2/0")
    files.write(f"{to}/_metadata/v2/{batch}", f"{version}\n{json.dumps(told, separators=(',', ':'))}")


def _relocated(value: Any, before: str, after: str) -> Any:
    """Return plain data with the paths below one folder as paths below another."""
    if isinstance(value, dict):
        return {name: _relocated(each, before, after) for name, each in value.items()}
    if isinstance(value, list):
        return [_relocated(each, before, after) for each in value]
    if isinstance(value, str) and value.startswith(f"{before}/"):
        return after + value.removeprefix(before)
    return value
