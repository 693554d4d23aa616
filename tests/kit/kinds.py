"""The kinds of statements that the grammar knows."""

from wjoin.grammar.statement_kinds import Statement


def kinds_of_statements(of: type[Statement] = Statement) -> set[type[Statement]]:
    """Return the classes of statements, without those that others are made of."""
    below = of.__subclasses__()
    return set[type[Statement]]().union(*map(kinds_of_statements, below)) if below else {of}
