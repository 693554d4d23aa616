"""The kernel and the route that docs/extending.md adds as examples, as they stand there."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from wjoin.parts.kernels.candidates import Candidates, Search
from wjoin.parts.kernels.kernel import Kernel, StepEstimate
from wjoin.parts.kernels.merge_window import MergeWindow
from wjoin.parts.kernels.runs import BoolArray, Int64Array, SortedRun
from wjoin.parts.routes.route import Codes, Role, Route, RowSlices, Share

_PAGE = Path(__file__).resolve().parents[2] / "docs" / "extending.md"
_NAMES = (Iterator, Candidates, Search, StepEstimate, MergeWindow, SortedRun, Role, Route, Share)


def _defined() -> dict[str, Any]:
    names: dict[str, Any] = {each.__name__: each for each in _NAMES}
    names |= {
        "np": np,
        "BoolArray": BoolArray,
        "Int64Array": Int64Array,
        "Codes": Codes,
        "RowSlices": RowSlices,
    }
    for code in re.findall(r"```python\n(.*?)```", _PAGE.read_text("utf-8"), re.DOTALL):
        exec(code, names)
    return names


_FOUND = _defined()

BLOCK: Kernel = _FOUND["BlockWindow"]()
EVERYWHERE: Route = _FOUND["Everywhere"]()
