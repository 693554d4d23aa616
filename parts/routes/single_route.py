"""Single route: one worker gets all rows."""

from collections.abc import Iterator

from wjoin.parts.kernels.runs import Int64Array
from wjoin.parts.routes.route import Codes, Route, RowSlices, Share


class SingleRoute(Route):
    """All rows meet on one worker, where nothing tells which of them could meet at all."""

    name = "single"
    meaning = "all rows go to one worker"
    meant_for = "streams without an equality between them"
    warning = (
        "A stage has no key, so one worker compares every pair of rows inside the windows. More workers "
        "would cost more, or the checkpoint is unknown. PLAN(ATR) uses several; so does PLAN(PSP), if all "
        "joins are inner ones."
    )

    def applies(self, *, keyed: bool, inputs: int, near: bool) -> bool:
        """Where there is a key, its rows can be apart from others."""
        return not keyed

    def workers(self, partitions: int) -> int:
        """One, however many partitions there are."""
        return 1

    def shares(self, codes: Codes, times: Int64Array, workers: int, slices: RowSlices) -> Iterator[Share]:
        """Yield all rows for the one worker."""
        yield Share(0, None)
