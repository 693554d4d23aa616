"""The operators of a checkpoint that have state, as Spark has written them down."""

import json

from wjoin.spark.hadoop_files import Files


def operators(files: Files, folder: str) -> dict[int, str]:
    """Return the numbers of the operators of a checkpoint that have state, and Spark's names for them."""
    state = f"{folder}/state"
    return {number: _operator(files, f"{state}/{number}") for number in files.numbers(state)}


def _operator(files: Files, state: str) -> str:
    batches = files.numbers(f"{state}/_metadata/v2")
    name = f"v2/{batches[-1]}" if batches else "metadata"
    body = files.read(f"{state}/_metadata/{name}").split("\n", 1)[1]
    return str(json.loads(body)["operatorInfo"]["operatorName"])
