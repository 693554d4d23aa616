"""The conditions of WINDOW … SINCE: each is on its stream alone."""

from collections.abc import Iterator, Mapping

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.join_tree import JoinTree
from wjoin.grammar.spans import Span
from wjoin.grammar.syntax import Conjunct, WindowCondition
from wjoin.grammar.window_terms import landmarks
from wjoin.planner.conditions.conjuncts import Filter, Surroundings, bind_conjunct
from wjoin.planner.text.scope import Scope
from wjoin.udfs.predicate import Predicate


def bound_landmarks(
    text: str,
    window: WindowCondition | None,
    scope: Scope,
    parameters: Mapping[str, object],
    predicates: Mapping[str, Predicate],
    tree: JoinTree,
) -> Iterator[tuple[Span, str]]:
    """Yield the places of the conditions of landmarks, and each in SQL over the alias of its stream.

    Raises WJ224 for a condition that is not on that stream alone, and the errors of names.
    """
    around = Surroundings(scope, parameters, predicates, (), tree)
    for each in landmarks(window) if window is not None else ():
        found = bind_conjunct(text, Conjunct(each.place, None), around)
        own = (source.number for source in scope.sources if each.stream.matches(source.name))
        if not isinstance(found, Filter) or found.stream not in own:
            message = f"the condition of SINCE must use columns of {each.stream.name} alone"
            remedy = "name only its columns, and no subquery, aggregate or function that changes by itself"
            raise WJoinError("WJ224", message, span=each.place, help=remedy)
        yield each.place, found.text
