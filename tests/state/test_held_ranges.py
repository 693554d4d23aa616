"""What is known of rows that are held at sites: ranges of numbers, and from when on they count."""

from hypothesis import given
from hypothesis import strategies as st

from wjoin.executor.sites.ranges import Announced, HeldRows, announced_after

BATCHES = st.lists(st.lists(st.integers(0, 60), min_size=1, max_size=6), min_size=1, max_size=12)


@given(BATCHES, st.integers(0, 20), st.integers(0, 40))
def test_a_row_counts_as_it_did_when_it_came_for_as_long_as_it_may_be_met(
    batches: list[list[int]], delay: int, reach: int
) -> None:
    """``batches``: the event times of the rows of each micro-batch, numbered one after the other."""
    held: tuple[HeldRows, ...] = ()
    came: list[tuple[int, bool]] = []
    seen: int | None = None
    for times in batches:
        mark = None if seen is None else seen - delay
        first = len(came)
        came += [(time, mark is None or time >= mark) for time in times]
        seen = max(times) if seen is None else max(seen, *times)
        settled = seen - delay - reach
        new = Announced(0, first, len(came), min(times), max(times))
        held = announced_after(held, [new], mark, settled)
        counting = {
            number
            for each in held
            for number in range(each.start, each.stop)
            if each.low is None or came[number][0] >= each.low
        }
        needed = {n for n, (time, in_time) in enumerate(came) if in_time and time >= settled}
        assert needed <= counting
        assert all(in_time for number in counting for in_time in [came[number][1]])


def test_ranges_in_time_are_one() -> None:
    held: tuple[HeldRows, ...] = ()
    for number in range(100):
        new = Announced(0, number * 10, number * 10 + 10, number, number + 5)
        held = announced_after(held, [new], number - 1, None)
    assert held == (HeldRows(0, 0, 1000, None, 104),)


def test_each_site_has_ranges_of_its_own() -> None:
    new = [Announced(1, 0, 5, 1, 2), Announced(0, 0, 5, 1, 9)]
    assert announced_after((), new, None, 3) == (HeldRows(0, 0, 5, None, 9),)
