"""What the conditions of USING, ON and WHERE are to the join, in that order."""

from tests.plans.catalogue import RELATIONS, first_block
from wjoin.planner.bind.binding import bind
from wjoin.planner.conditions.conjuncts import ColumnComparison, Equality, Filter, Residual


def test_conditions_of_using_on_and_where_are_bound_in_order() -> None:
    sql = """
        SELECT A.code FROM badge A JOIN badge B USING (person)
        JOIN badge C ON A.code = C.code AND B.door < C.door AND C.level > 3
        WINDOW = 5 SECONDS WHERE A.level > 3 AND B.door < C.door AND A.level + B.level > C.level
    """
    bound = bind(sql, first_block(sql), [RELATIONS["badge"]] * 3, {}, {})
    assert [type(each) for each in bound.conjuncts] == [
        *(Equality, Equality, ColumnComparison, Filter),
        *(Filter, ColumnComparison, Residual),
    ]
