"""Approximate joins of two streams at sites in a plan: which rows come, and which joins are refused."""

from dataclasses import replace

import pytest

from tests.kit.planned import plan_over, stream_of
from wjoin.grammar.errors import WJoinError
from wjoin.planner.catalog import Estimate, Origin, Relation, SiteFacts
from wjoin.planner.choose.layouts import FREE, of_checkpoint
from wjoin.planner.explain.describe import describe
from wjoin.planner.explain.text import explain_text
from wjoin.planner.plan.physical import LikelyRows, Shipping
from wjoin.planner.planning import PlannedSelect
from wjoin.planner.text.edits import apply_edits

COLUMNS = {"id": "bigint", "x": "double", "payload": "binary"}
WIDTHS = {"ts": 8.0, "id": 8.0, "x": 8.0, "payload": 1400.0}
LINK = Estimate(0.005, Origin.MEASURED), Estimate(1e6, Origin.MEASURED)
LOCAL = stream_of(COLUMNS, {"rate": 1000, "distinct.id": 100_000})
REMOTE = replace(LOCAL, site=SiteFacts(WIDTHS, *LINK, "ts", frozenset(WIDTHS)))
SECOND = 1_000_000

SELECT = "SELECT {hint} A.payload, B.ts FROM a A, b B {windows} WHERE A.id = B.id"
HINT = "/*+ APPROXIMATE(error = 0.1) */"


def planned(sql: str, *relations: Relation, **more: object) -> PlannedSelect:
    return plan_over(sql, list(relations or (REMOTE, REMOTE)), **more)


def test_rows_that_probably_match_come_and_others_wait_for_twice_the_window() -> None:
    exact = planned(SELECT.format(hint="", windows="WINDOW (A, B) BETWEEN -5 s AND 20 s")).physical
    plan = planned(SELECT.format(hint=HINT, windows="WINDOW (A, B) BETWEEN -5 s AND 20 s")).physical
    assert plan.approximate is None
    for stream, (before, scan) in enumerate(zip(exact.streams, plan.streams, strict=True)):
        assert scan.site is not None
        hold = 40 * SECOND + max(each.delay for each in exact.streams)
        assert scan.site.shipping is Shipping.LIKELY
        # 1,000 rows a second, for each of which there are 64 buckets.
        assert scan.site.likely == LikelyRows(
            0.1, None, hold, before.delay, "id", 22, 1416.0 if stream == 0 else 16.0
        )
        assert scan.delay == before.delay + hold


def test_explain_says_what_comes() -> None:
    text = explain_text(describe(planned(SELECT.format(hint=HINT, windows="WINDOW = 5 s"))))
    assert "A likely: whole rows, only those that probably match; others wait at the site; " in text
    assert "\n    instead of full: whole rows; " in text


def test_a_setting_is_for_joins_that_can_be_approximate() -> None:
    plain = SELECT.format(hint="", windows="WINDOW = 5 s")
    wish = {"settings": {"APPROXIMATE": "error = 0.2"}}
    site = planned(plain, **wish).physical.streams[0].site
    assert site is not None
    assert site.likely is not None
    assert site.likely.error == 0.2
    mixed = planned(plain, REMOTE, LOCAL, **wish).physical
    assert mixed.streams[0].site is not None
    assert mixed.streams[0].site.likely is None


def test_rows_may_be_asked_for_instead_of_results_and_the_plan_by_name() -> None:
    named = "/*+ APPROXIMATE(messages = 0.2), PLAN(DIGEST) */"
    sql = SELECT.format(hint=named, windows="WINDOW = 5 s")
    found = planned(sql)
    site = found.physical.streams[0].site
    assert site is not None
    assert site.likely is not None
    assert (site.likely.error, site.likely.messages) == (None, 0.2)
    # Spark reads what is left of the text.
    assert "/*+" not in (rest := apply_edits(sql, found.edits)), rest
    assert "*/" not in rest


def test_by_the_plan_base_all_rows_come() -> None:
    plan = planned(SELECT.format(hint="/*+ PLAN(BASE) */", windows="WINDOW = 5 s")).physical
    assert plan.approximate is None
    for scan in plan.streams:
        assert scan.site is not None
        assert (scan.site.shipping, scan.site.likely) == (Shipping.FULL, None)


OTHERWISE = replace(REMOTE, site=SiteFacts(WIDTHS, *LINK, "", frozenset(WIDTHS)))


@pytest.mark.parametrize(
    ("sql", "relations", "why"),
    [
        (
            SELECT.format(hint=HINT, windows="WINDOW = 5 s"),
            (REMOTE, LOCAL),
            "takes A from its site by itself",
        ),
        (SELECT.format(hint=HINT, windows="WINDOW = 5 s"), (OTHERWISE, REMOTE), "reads the event time of A"),
        (
            SELECT.format(hint="/*+ PLAN(DIGEST) */", windows="WINDOW = 5 s"),
            (REMOTE, REMOTE),
            "over sites asks for a share of results, or of rows",
        ),
        (
            SELECT.format(hint="/*+ APPROXIMATE(error = 0.1), PLAN(DIGEST, 4) */", windows="WINDOW = 5 s"),
            (REMOTE, REMOTE),
            "over sites has its sites as nodes",
        ),
        *(
            (
                SELECT.format(hint=f"/*+ APPROXIMATE(error = 0.1), PLAN({name}) */", windows="WINDOW = 5 s"),
                (REMOTE, REMOTE),
                f"has the plans DIGEST and BASE: {name} ",
            )
            for name in ("DFT", "DFTT", "BLOOM", "SKCH", "COUNTSKETCH")
        ),
        (
            SELECT.format(hint="/*+ APPROXIMATE(error = 0.1), SHIP(A = FULL) */", windows="WINDOW = 5 s"),
            (REMOTE, REMOTE),
            "leave SHIP out",
        ),
        (
            f"SELECT {HINT} A.id FROM a A, b B WINDOW = 5 s WHERE A.x = B.x",
            (REMOTE, REMOTE),
            "needs a key of A that is one column",
        ),
        (
            f"SELECT {HINT} A.id FROM a A, b B, b C WINDOW = 5 s WHERE A.id = B.id AND B.id = C.id",
            (REMOTE, REMOTE, REMOTE),
            "over sites is of two streams",
        ),
        (
            f"SELECT {HINT} A.id FROM a A LEFT JOIN b B ON A.id = B.id WINDOW = 5 s",
            (REMOTE, REMOTE),
            "has inner joins only",
        ),
        (
            f"SELECT {HINT} A.id, count(*) FROM a A, b B WINDOW = 5 s WHERE A.id = B.id GROUP BY A.id",
            (REMOTE, REMOTE),
            "has no groups or aggregates",
        ),
    ],
)
def test_what_cannot_be_approximate_says_why(sql: str, relations: tuple[Relation, ...], why: str) -> None:
    with pytest.raises(WJoinError) as caught:
        planned(sql, *relations)
    assert caught.value.code == "WJ505"
    assert why in f"{caught.value} {caught.value.help}"


def test_a_checkpoint_that_holds_rows_goes_on_holding_them() -> None:
    often = {**LOCAL.statistics, "rate": Estimate(20_000.0), "distinct.id": Estimate(1e6)}
    rare = {**LOCAL.statistics, "rate": Estimate(0.2)}
    both = (replace(REMOTE, statistics=often), replace(REMOTE, statistics=rare))
    held = planned(SELECT.format(hint="", windows="WINDOW = 5 s"), *both, layouts=FREE).layout
    assert held.held == (0,)
    with pytest.raises(WJoinError, match=r"WJ505.*the checkpoint holds"):
        planned(SELECT.format(hint=HINT, windows="WINDOW = 5 s"), *both, layouts=of_checkpoint(held))
