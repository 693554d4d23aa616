"""The nearest combination, and what it lacks: windows against a model, and what looks alike."""

from hypothesis import given
from hypothesis import strategies as st

from wjoin.asking.alternatives import Bound
from wjoin.asking.judged import Combination, Verdict, judged, near_miss
from wjoin.asking.needs import Kind, Need, Needs
from wjoin.planner.plan.physical import TimeKind

HOUR = 3_600_000_000
T0 = 1_700_000_000_000_000


def needs(*alternatives: tuple[Bound, ...], kind: TimeKind = TimeKind.TIMESTAMP) -> Needs:
    key = Need(Kind.KEY, (0, 1), "A.id = B.id", "A.id = B.id", ((0, "A.id"), (1, "B.id")))
    names = ("A", "B", "C")
    return Needs(names, kind, (0, 0, 0), (None,) * 3, ("t",) * 3, (key,), alternatives, ((), (), ()), ())


def verdict(asked: Needs, *times: int | None, sides: tuple[str | None, str | None] = ("1", "1")) -> Verdict:
    holds = sides[0] is not None and sides[0] == sides[1]
    return judged(asked, Combination(times, (holds,), (None,), (sides,), ("", "", "")))


bounds = st.builds(
    lambda pair, least, width: Bound(*pair, least, least + width),
    st.sampled_from([(0, 1), (1, 2), (0, 2)]),
    st.integers(-50, 50),
    st.integers(0, 30),
)


@given(
    st.lists(st.lists(bounds, min_size=1, max_size=3), min_size=1, max_size=3),
    st.tuples(*[st.integers(0, 100)] * 3),
)
def test_what_is_outside_is_so_by_as_much_as_is_told(
    alternatives: list[list[Bound]], times: tuple[int, int, int]
) -> None:
    found = verdict(needs(*map(tuple, alternatives), kind=TimeKind.INTEGRAL), *times)
    model = min(
        sum(
            max(0, times[b.second] - times[b.first] - b.most, b.least - times[b.second] + times[b.first])
            for b in one
            if b.most is not None and b.least is not None
        )
        for one in alternatives
    )
    assert sum(each.beyond for each in found.faults) == model
    assert bool(found.faults) == (model > 0)


def test_a_window_tells_how_far_off_and_in_which_direction() -> None:
    asked = needs((Bound(0, 1, -5_000_000, 5_000_000),))
    (late,) = verdict(asked, T0, T0 + 8_200_000, T0).faults
    shown = "window (A, B): 5 s in both directions; B is 8 s 200 ms later than A: 3 s 200 ms too late"
    assert late.text == shown
    (early,) = verdict(asked, T0, T0 - 6_000_000, T0).faults
    assert early.text.endswith("B is 6 s earlier than A: 1 s too early")
    assert verdict(asked, T0, T0 + 5_000_000, T0).faults == ()


def test_another_time_zone_and_another_unit_are_suspected() -> None:
    asked = needs((Bound(0, 1, -5_000_000, 5_000_000),))
    (zone,) = verdict(asked, T0, T0 + 2 * HOUR + 1_000_000, T0).faults
    assert zone.hint == ("Moved by 2 h it would be inside: are both in one time zone?")
    plain = needs((Bound(0, 1, -5, 5),), kind=TimeKind.INTEGRAL)
    (unit,) = verdict(plain, 1_700_000_000, 1_700_000_003_000, 0).faults
    assert unit.hint == ("The time of B is 1,000 times that of A: is one of them in milliseconds?")
    (year,) = verdict(asked, T0, T0 + 365 * 24 * HOUR - 1_000_000, T0).faults
    assert year.hint == "Moved by 365 d it would be inside: are both of one date?"
    ordered = needs((Bound(0, 1, 0, 5_000_000),))
    (exchanged,) = verdict(ordered, T0, T0 - 3_000_000, T0).faults
    assert exchanged.hint == "With A and B exchanged it would be inside: is their order in the window right?"
    wide = needs((Bound(0, 1, -HOUR, HOUR),))
    assert not verdict(wide, T0, T0 + 3 * HOUR, T0).faults[0].hint
    (other,) = verdict(plain, 1_700_000_000, 1_700_000_100, 0).faults
    assert other.text.endswith("too late") and not other.hint


def test_a_null_is_no_time_and_equals_nothing() -> None:
    asked = needs((Bound(0, 1, 0, 5),))
    (undated,) = verdict(asked, T0, None, T0).faults
    assert undated.text == "B has no event time: it is NULL"
    (key,) = verdict(asked, T0, T0, T0, sides=("1", None)).faults
    assert key.text == "A.id = B.id: B.id is NULL, which equals nothing"


def test_keys_come_before_windows() -> None:
    found = verdict(needs((Bound(0, 1, 0, 5),)), T0, T0 + 9, T0, sides=("a ", "a"))
    assert [each.kind for each in found.faults] == [Kind.KEY, Kind.WINDOW]
    assert found.faults[0].text == "A.id = B.id: 'a ' is not 'a': they differ only in spaces"


def test_values_that_look_alike() -> None:
    assert near_miss("Car", "car ") == ": they differ only in upper and lower case"
    assert near_miss("7", "7.0") == ": both are one number, so compare them as numbers"
    assert near_miss("7", "7") == ": both are written the same, but their types differ"
    assert near_miss("car", "bus") == ""
