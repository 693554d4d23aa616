"""Which micro-batch has read a record of Kafka, by the offsets of a checkpoint."""

from hypothesis import given
from hypothesis import strategies as st

from wjoin.asking.read_log import EARLIER, NEVER, Stretch, _offsets, _stretches

numbers = st.lists(st.integers(0, 4), min_size=1, max_size=6)


def batch_of(found: list[Stretch], partition: int, offset: int) -> int | None:
    own = [
        each.batch
        for each in found
        if each.partition == partition and (each.begin is None or each.begin <= offset) and offset < each.end
    ]
    assert len(own) <= 1
    return own[0] if own else None


@given(st.lists(numbers, min_size=1, max_size=3), st.integers(0, 5), st.integers(0, 3))
def test_each_offset_is_of_the_micro_batch_that_read_it(read: list[list[int]], gone: int, begin: int) -> None:
    """``read``: how many records of each partition each micro-batch read; ``gone`` of them are not kept."""
    batches = max(map(len, read))
    gone = min(gone, batches - 1)
    ends: dict[int, list[dict[str, dict[str, int]] | None]] = {}
    model: dict[tuple[int, int], int] = {}
    for batch in range(batches):
        end = {}
        for partition, each in enumerate(read):
            before = begin + sum(each[:batch])
            end[str(partition)] = before + sum(each[batch : batch + 1])
            known = EARLIER if gone and batch <= gone else batch
            model.update(dict.fromkeys(((partition, n) for n in range(before, end[str(partition)])), known))
        if batch >= gone:
            ends[batch] = [None, {"t": end}]
    found = [*_stretches(ends, 1, {"t": {str(each): begin for each in range(len(read))}})]
    for partition, each in enumerate(read):
        for offset in range(begin + sum(each) + 2):
            wanted = NEVER if offset < begin else model.get((partition, offset))
            assert batch_of(found, partition, offset) == wanted
    assert [*_stretches(ends, 0, {})] == []


def test_a_partition_that_came_later_is_read_from_its_beginning() -> None:
    ends = {0: [{"t": {"0": 2}}], 1: [{"t": {"0": 2, "1": 3}}]}
    found = [*_stretches(ends, 0, {"t": {"0": 0}})]
    assert batch_of(found, 1, 0) == 1 and batch_of(found, 0, 1) == 0


def test_offsets_of_other_sources_are_none_of_kafka() -> None:
    assert _offsets('{"t":{"0":5}}') == {"t": {"0": 5}}
    others = ('{"logOffset":3}', "-", "17", '{"sourceVersion":1,"table":{"index":-1}}', '{"t":{"a":{}}}')
    assert [_offsets(each) for each in others] == [None] * len(others)
