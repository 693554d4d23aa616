"""Which rows are kept, against the definition."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wjoin.executor.state.kept_rows import kept
from wjoin.executor.state.manifest import Manifest, written_manifest
from wjoin.executor.state.writing import FIRST_CUTTING, Writing
from wjoin.parts.kernels.runs import GREATEST, LEAST
from wjoin.planner.plan.stage_kinds import Retention

NEAR = st.integers(-9, 9)


@pytest.mark.parametrize("time", [NEAR, NEAR | st.sampled_from([LEAST, LEAST + 1, GREATEST - 1, GREATEST])])
@given(data=st.data())
def test_a_row_is_kept_until_no_row_of_some_stream_can_reach_it(
    time: st.SearchStrategy[int], data: st.DataObject
) -> None:
    members, others = (range(data.draw(st.integers(1, 3))) for _ in range(2))
    retentions = tuple(
        Retention(other, tuple((member, data.draw(st.none() | NEAR)) for member in members))
        for other in others
    )
    marks = {other: data.draw(st.none() | time) for other in others}
    rows = data.draw(st.lists(st.tuples(*(time for _ in members)), max_size=8))
    columns = np.array(rows, np.int64).reshape(-1, len(members))
    found = kept(retentions, {member: columns[:, member] for member in members}, marks)
    assert found.tolist() == [
        any(
            marks[each.stream] is None
            or all(far is None or row[member] + far >= marks[each.stream] for member, far in each.distances)
            for each in retentions
        )
        for row in rows
    ]


def test_a_manifest_that_says_nothing_of_rows_own_ends_is_as_before() -> None:
    rules = Retention(1, ((0, 5),)), Retention(2, ((0, 5),), ("c0_1",))
    writing = Writing(("key",), (rules,), FIRST_CUTTING)
    manifest = replace(Manifest.fresh("plan", 1, 1), writing=writing)
    encoded = manifest.encode()
    assert encoded.count(b"until") == 1
    assert written_manifest(encoded) == manifest
