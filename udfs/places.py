"""Predicates over places on Earth."""

import numpy as np
import numpy.typing as npt

from wjoin.udfs.predicate import predicate

EARTH_RADIUS_KM = 6371.0088
"""The mean radius (IUGG)."""

Floats = npt.NDArray[np.float64]


@predicate(returns="double", cost_us=0.2)
def haversine_km(latitude: Floats, longitude: Floats, latitude2: Floats, longitude2: Floats) -> Floats:
    """The distance of two places in kilometres along the surface of a sphere; degrees in."""
    phi, other_phi, lam, other_lam = (
        np.radians(np.asarray(each, np.float64)) for each in (latitude, latitude2, longitude, longitude2)
    )
    half = (
        np.sin((other_phi - phi) / 2) ** 2
        + np.cos(phi) * np.cos(other_phi) * np.sin((other_lam - lam) / 2) ** 2
    )
    return np.asarray(2 * EARTH_RADIUS_KM * np.arcsin(np.sqrt(np.clip(half, 0, 1))))
