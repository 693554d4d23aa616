"""A bound condition knows whether it stands in WHERE, or in the ON or USING of which item of FROM."""

from tests.plans.catalogue import RELATIONS, first_block
from wjoin.planner.bind.binding import bind
from wjoin.planner.conditions.conjuncts import ColumnComparison, Equality, Filter, Residual


def test_conditions_of_an_on_and_of_where_are_kept_apart_whatever_they_are() -> None:
    sql = """
        SELECT A.code FROM badge A JOIN badge B USING (person)
        JOIN badge C ON A.code = C.code AND B.door < C.door AND C.level > 3
        WINDOW = 5 SECONDS WHERE A.level > 3 AND B.door < C.door AND A.level + B.level > C.level
    """
    bound = bind(sql, first_block(sql), [RELATIONS["badge"]] * 3, {}, {})
    assert [(type(each), each.on) for each in bound.conjuncts] == [
        (Equality, 1),
        (Equality, 2),
        (ColumnComparison, 2),
        (Filter, 2),
        (Filter, None),
        (ColumnComparison, None),
        (Residual, None),
    ]


def test_a_join_binds_closer_than_a_comma_also_one_after_parentheses() -> None:
    sql = """
        SELECT A.code FROM (badge A JOIN badge B USING (person)), badge C JOIN badge D USING (person)
        WINDOW = 5 SECONDS
    """
    bound = bind(sql, first_block(sql), [RELATIONS["badge"]] * 4, {}, {})
    equalities = [each for each in bound.conjuncts if isinstance(each, Equality)]
    assert [(each.left.stream, each.right.stream) for each in equalities] == [(0, 1), (2, 3)]
