"""Which micro-batch has read a record of Kafka, by the offsets of a checkpoint."""

from hypothesis import given
from hypothesis import strategies as st

from wjoin.asking.read_log import EARLIER, NEVER, Stretch, _batch_of, _offsets, _stretches

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


@given(st.lists(st.booleans(), min_size=1, max_size=8), st.integers(0, 7))
def test_files_are_of_the_micro_batch_that_read_them(brought: list[bool], gone: int) -> None:
    """A source numbers the micro-batches that bring files; ``gone`` of their offsets are not kept."""
    oldest = min(gone, len(brought) - 1)
    ends = {batch: sum(brought[: batch + 1]) - 1 for batch in range(len(brought))}
    log = {batch: end for batch, end in ends.items() if batch >= oldest and end >= 0}
    known = []
    for batch in (batch for batch, any_ in enumerate(brought) if any_):
        found = _batch_of(ends[batch], log, oldest)
        assert found is not None and (found == batch if batch > oldest or oldest == 0 else found < EARLIER)
        known.append(found)
    assert known == sorted({*known})
    assert _batch_of(len(brought), log, oldest) is None
