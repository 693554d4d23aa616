"""The errors that theorems 1 to 3 tell: for nodes that all hold as much, and for such of falling shares."""


def uniform_error(nodes: int, messages: float, alpha: float = 1.0) -> float:
    """Return the error where all nodes hold as many matches (theorems 1 and 2).

    A row meets those at home and at ``messages`` others. It is what to expect of round robin, and of no
    choice.

    >>> uniform_error(20, 1)
    0.9
    """
    return max(1 - (1 + messages) / nodes, 0.0)


def zipf_error(nodes: int, messages: float, alpha: float) -> float:
    """Return theorem 3's error, where the k-th node of a row holds ``alpha`` to the k of the matches.

    As the paper has it: for T = 1 its sum is divided by N, and the shares of all nodes do not add up to 1. So
    for ``alpha`` = 0.4 it never falls below a third.

    >>> round(zipf_error(20, 4.32, 0.4), 2)
    0.35
    """
    if messages <= 1:
        return 1 - float(alpha + alpha**2) / nodes
    return 1 - float(alpha - alpha ** (messages + 1)) / (1 - alpha)


def falling_error(nodes: int, messages: float, alpha: float) -> float:
    """Return the error where shares that fall by ``alpha`` add up to 1, and the greatest is at home.

    >>> round(falling_error(20, 1, 0.4), 2)
    0.16
    """
    return max(float(alpha ** (1 + messages) - alpha**nodes) / (1 - alpha**nodes), 0.0)
