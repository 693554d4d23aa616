"""How EXPLAIN tells of bands: conditions that hold two streams' columns near each other."""

from collections.abc import Iterator, Sequence

from wjoin.parts.kernels.registry import KERNELS
from wjoin.parts.kernels.runs import Order
from wjoin.planner.physical import Band, Stage, StreamScan


def band_lines(stage: Stage, streams: Sequence[StreamScan]) -> Iterator[str]:
    """Yield the bands of a stage, and what orders the rows of its inputs."""
    for band in stage.bands:
        if not band.checked:
            yield f"near: {band_words(band, streams)}"
    if KERNELS[stage.kernels[0]].order is Order.VALUE:
        orders = [_ordered(stage, number, streams) for number in range(len(stage.inputs))]
        yield f"order: {', '.join(each for each in orders if each)}"


def band_words(band: Band, streams: Sequence[StreamScan]) -> str:
    """Return what a band says."""
    left, right = (streams[stream].columns[number].expression for stream, number in (band.left, band.right))
    low = "" if band.low is None else f"{band.low:g} <= " if band.slack else f"{band.low} <= "
    high = "" if band.high is None else f" <= {band.high:g}" if band.slack else f" <= {band.high}"
    return f"{low}{left} - {right}{high}"


def _ordered(stage: Stage, number: int, streams: Sequence[StreamScan]) -> str:
    band, members = stage.inputs[number].index, stage.inputs[number].members
    if band is None:
        return ""
    stream, column = band.left if band.left[0] in members else band.right
    names = ", ".join(streams[each].alias for each in members)
    return f"the rows of {names} by {streams[stream].columns[column].expression}"
