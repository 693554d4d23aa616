"""Where the streams of a window graph stand, and the labels of its edges."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wjoin.planner.explain.phrases import CompletedWindow

_GAP = 5
_BROAD = 130
_GROWTH = 1.12
_ATTEMPTS = 30

Line = tuple[tuple[float, float], tuple[float, float]]


@dataclass(frozen=True)
class Box:
    """A rectangle around a centre."""

    x: float
    y: float
    width: float
    height: float

    def touches(self, other: "Box") -> bool:
        """Return whether there is less than a gap between two boxes."""
        across = abs(self.x - other.x) < (self.width + other.width) / 2 + _GAP
        return across and abs(self.y - other.y) < (self.height + other.height) / 2 + _GAP

    def border(self, x: float, y: float) -> tuple[float, float]:
        """Return where the line from the centre to a point outside leaves the box."""
        across, down = x - self.x, y - self.y
        share = min(
            self.width / 2 / abs(across) if across else math.inf,
            self.height / 2 / abs(down) if down else math.inf,
        )
        return self.x + across * share, self.y + down * share

    def crossed(self, start: tuple[float, float], end: tuple[float, float]) -> bool:
        """Return whether a line runs through the box."""
        (x, y), (across, down) = start, (end[0] - start[0], end[1] - start[1])
        inside = [0.0, 1.0]
        for place, step, centre, size in ((x, across, self.x, self.width), (y, down, self.y, self.height)):
            if not step:
                if abs(place - centre) > size / 2:
                    return False
                continue
            ends = sorted(((centre - size / 2 - place) / step, (centre + size / 2 - place) / step))
            inside = [max(inside[0], ends[0]), min(inside[1], ends[1])]
        return inside[0] <= inside[1]


def arranged(
    sizes: Mapping[str, tuple[float, float]],
    links: Sequence[CompletedWindow],
    labels: Mapping[CompletedWindow, tuple[float, float]],
) -> tuple[dict[str, Box], dict[CompletedWindow, Box]]:
    """Return the places of streams and labels, as near to each other as the labels allow."""
    scale = 1.0
    for _ in range(_ATTEMPTS):
        places = _circle(sizes, labels, scale)
        spots = _spots(places, links, labels)
        if len(spots) == len(labels):
            break
        scale *= _GROWTH
    return places, spots


def _circle(
    sizes: Mapping[str, tuple[float, float]],
    labels: Mapping[CompletedWindow, tuple[float, float]],
    scale: float,
) -> dict[str, Box]:
    """Return the streams on an ellipse, the first at its top; two stand in a row."""
    widest = min(_BROAD, max((width for width, _ in labels.values()), default=60.0))
    broad = max(width for width, _ in sizes.values())
    count = len(sizes)
    if count <= 2:
        half = scale * (broad + widest + 60) / 2
        return {name: Box((2 * n - 1) * half, 0, *size) for n, (name, size) in enumerate(sizes.items())}
    across = scale * max(140.0, (broad + 0.6 * widest) * count / 5)
    down = scale * max(95.0, 42.0 * count / 1.3)
    found = {}
    for number, (name, size) in enumerate(sizes.items()):
        angle = 2 * math.pi * number / count - math.pi / 2
        found[name] = Box(across * math.cos(angle), down * math.sin(angle), *size)
    return found


def _spots(
    places: Mapping[str, Box],
    links: Sequence[CompletedWindow],
    labels: Mapping[CompletedWindow, tuple[float, float]],
) -> dict[CompletedWindow, Box]:
    """Return places of labels on their edges that are free, the labels of short edges first."""
    lines = {link: ends(places[link.first], places[link.second]) for link in links}
    found: dict[CompletedWindow, Box] = {}
    for link in sorted(labels, key=lambda each: math.dist(*lines[each])):
        taken = [*places.values(), *found.values()]
        box = _spot(link, labels[link], lines, taken)
        if box is not None:
            found[link] = box
    return found


def _spot(
    link: CompletedWindow,
    size: tuple[float, float],
    lines: Mapping[CompletedWindow, Line],
    taken: Sequence[Box],
) -> Box | None:
    """Return the free place on an edge through which the fewest other edges run, near its middle."""
    (x, y), (far_x, far_y) = lines[link]
    best: tuple[float, Box] | None = None
    for step in range(-20, 21):
        share = 0.5 + step * 0.018
        box = Box(x + (far_x - x) * share, y + (far_y - y) * share, *size)
        if any(box.touches(other) for other in taken):
            continue
        crossings = sum(box.crossed(*line) for other, line in lines.items() if other is not link)
        price = crossings + abs(step) / 10
        if best is None or price < best[0]:
            best = price, box
    return best[1] if best else None


def ends(first: Box, second: Box) -> Line:
    """Return the line between two boxes, from border to border."""
    return first.border(second.x, second.y), second.border(first.x, first.y)
