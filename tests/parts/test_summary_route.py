"""The routes of approximate joins: who gets which rows, and as what."""

import numpy as np

from wjoin.parts.routes.registry import ROUTES, applicable, routes_of
from wjoin.parts.routes.route import Role, Visits

HOME = np.array([0, 2, 1, 0])
CHOSEN = np.array([[True, True, False], [True, False, True], [False, False, False], [False, False, True]])
TRIED = np.array([False, False, True, False])


def got(visits: Visits) -> dict[tuple[int, Role], list[int]]:
    shares = ROUTES["bloom"].shares(np.arange(4), np.arange(4), 3, visits)
    return {(each.worker, each.role): [] if each.rows is None else each.rows.tolist() for each in shares}


def test_a_row_lives_at_its_home_and_visits_what_is_chosen_or_tried() -> None:
    assert got(Visits(HOME, CHOSEN, TRIED)) == {
        (0, Role.BOTH): [0, 3],
        (1, Role.BOTH): [2],
        (2, Role.BOTH): [1],
        (0, Role.VISIT): [1],
        (0, Role.TRIAL): [2],
        (1, Role.VISIT): [0],
        (2, Role.VISIT): [3],
        (2, Role.TRIAL): [2],
    }


def test_a_row_that_is_only_kept_visits_nothing() -> None:
    nothing = np.zeros((4, 3), bool)
    found = got(Visits(HOME, nothing, nothing[:, 0], Role.STORE))
    assert found == {(0, Role.STORE): [0, 3], (1, Role.STORE): [2], (2, Role.STORE): [1]}


def test_a_trial_probes_and_is_counted_elsewhere() -> None:
    assert Role.TRIAL.probes and not Role.TRIAL.stores and not Role.TRIAL.counts


def test_no_approximate_route_applies_unasked() -> None:
    names = {name for name, route in ROUTES.items() if route.approximate}
    assert names == set(routes_of("approximate"))
    assert names.isdisjoint(applicable(keyed=True, inputs=2, near=False))
    assert routes_of("hash") == ("hash",)
