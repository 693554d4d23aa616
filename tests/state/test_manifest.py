"""What a checkpoint says of itself, and what refuses to read it."""

import json
import pickle

import pytest

from wjoin.executor.state.identity import STATE_FORMAT
from wjoin.executor.state.manifest import Manifest, decode_manifest
from wjoin.executor.state.slices import Slice
from wjoin.grammar.errors import WJoinError

MANIFEST = Manifest("plan", 2, 4, {0: 7, 1: -3}, ((Slice("3", 5, 100, 1, 2, "key", "d1" * 16),), ()))


def test_manifest_comes_back_as_it_was() -> None:
    assert decode_manifest(MANIFEST.encode(), "plan", 2) == MANIFEST


@pytest.mark.parametrize("number", [STATE_FORMAT - 1, STATE_FORMAT + 1])
def test_another_state_format_is_refused(number: int) -> None:
    body = json.loads(MANIFEST.encode())
    body["format"] = number
    with pytest.raises(WJoinError, match="WJ701") as raised:
        decode_manifest(json.dumps(body).encode(), "plan", 2)
    assert f"state format {number}; this version of wjoin reads {STATE_FORMAT}" in raised.value.message
    assert "new checkpoint folder" in raised.value.help


def test_another_plan_and_another_number_of_workers_are_refused() -> None:
    with pytest.raises(WJoinError, match="WJ702"):
        decode_manifest(MANIFEST.encode(), "other", 2)
    with pytest.raises(WJoinError, match=r"WJ703[\s\S]*spark.sql.shuffle.partitions to 2"):
        decode_manifest(MANIFEST.encode(), "plan", 3)


def test_errors_travel_from_the_workers() -> None:
    error = WJoinError("WJ701", "of another format")
    assert pickle.loads(pickle.dumps(error)).render() == error.render()
