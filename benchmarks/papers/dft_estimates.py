"""What a query tells of its error while it runs, by the sample alone, and what the error is."""

from collections.abc import Sequence

from dft_grid import precise
from dft_loads import SETS, Set
from dft_simulation import Outcome, World, as_it_runs, asked
from report import Table, Verdict
from s2j_parts import Judged, Part, percent, told

ERROR = 0.15


def estimates(*, quick: bool) -> Part:
    """Run many times with ε = 15 % asked for, and compare what is told with what is true."""
    lines: list[list[str]] = []
    every: list[Outcome] = []
    for name, load in SETS.items():
        for kind in ("dft", "bloom", "digest"):
            found = _runs(load, kind, quick=quick)
            every += found
            widths = [each.told.high - each.told.low for each in found]
            lines.append(
                [
                    f"{name}, {kind.upper()}",
                    _spread([each.error for each in found]),
                    _spread([each.told.error for each in found]),
                    percent(sum(widths) / len(found), 1),
                    f"{sum(map(_inside, found))} of {len(found)}",
                    precise(sum(each.per_row for each in found) / len(found)),
                ]
            )
            told(f"{name}, {kind}")
    head = ["set, summary", "ε", "ε told", "width of the interval", "ε in it", "messages a row"]
    title = "As it runs, with ε = 15 % asked for and a sample of 1/64 of the keys"
    share = sum(map(_inside, every)) / len(every)
    errors = [each.error for each in every]
    claims = [
        Judged(
            "here",
            "ε lies in the interval that is told in 95 % of the runs",
            Verdict(share >= 0.95, f"{percent(share, 1)} of {len(every)}"),
        ),
        Judged(
            "here",
            "ε is what was asked for, within 5 points",
            Verdict(all(abs(each - ERROR) < 0.05 for each in errors), _spread(errors)),
        ),
    ]
    return Part([Table("estimates", title, head, lines)], [], claims)


def _runs(load: Set, kind: str, *, quick: bool) -> list[Outcome]:
    """Return runs over several worlds, with several seeds each."""
    runs, nodes, window, new = (5, 4, 1 << 12, 1500) if quick else (20, 8, 1 << 13, 1500)
    found = []
    for world in range(-(-runs // 5)):
        case = asked(World.of(load, nodes, window, new, world), kind, window // 2)
        found += [as_it_runs(case, ERROR, 100 + 5 * world + seed) for seed in range(5)]
    return found[:runs]


def _inside(outcome: Outcome) -> bool:
    return outcome.told.low <= outcome.error <= outcome.told.high


def _spread(values: Sequence[float]) -> str:
    return f"{percent(min(values), 1)} to {percent(max(values), 1)}"
