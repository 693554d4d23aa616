"""The texts that move in the drawing of a plan."""

from collections.abc import Iterator

from wjoin.measured.progress import behind
from wjoin.planner.figures import figure
from wjoin.web.present import QueryState, a_second


def places(at: QueryState) -> Iterator[tuple[str, str]]:
    """Yield the texts that move in the drawing of the plan, by their places there (``page_plan``)."""
    total, recent = at.hour.total, at.recent
    lag = at.lag
    for number in at.plans:
        for name in dict.fromkeys((*total.rows_in, *total.null_times)):
            lost = sum(counts.get(name, 0) for counts in total.losses.values())
            yield f"{number}:lost:{name}", f"{figure(lost)} dropped" if lost else "none dropped"
            if name in total.rows_in:
                rate = f"{a_second(at.rate(recent.rows_in.get(name, 0)))} rows/s"
                late = f", {behind(lag[name])} behind" if name in lag else ""
                yield f"{number}:rows:{name}", rate + late
            if name in total.state_rows:
                yield f"{number}:kept:{name}", f"{figure(total.state_rows[name])} rows kept"
        results = 0.0
        for key in total.stages:
            join, _, stage = key.partition(".")
            if int(join) == number:
                results = at.rate(recent.of_stage(key, "matches"))
                work = a_second(at.rate(recent.of_stage(key, "comparisons")))
                yield f"{number}:compared:{stage}", f"{work} comparisons/s"
                yield f"{number}:matched:{stage}", f"{a_second(results)} matches/s"
        yield f"{number}:results", f"{a_second(results)} joined rows/s"
