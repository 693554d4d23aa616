"""docs/notebooks.md says what is true: its cells run, in order, in a kernel of their own."""

import re
from pathlib import Path

import pytest

from tests.notebook.kernels import Kernel, Output
from tests.packages import ROOT
from wjoin.notebook.cell_options import CellOptions

pytestmark = pytest.mark.thorough

PAGE = ROOT / "docs" / "notebooks.md"
_CELL = re.compile(r"^```(?:text|python)\n((?:%|import |session = ).*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_page_has_every_option() -> None:
    text = PAGE.read_text("utf-8")
    for name in set(CellOptions.__dataclass_fields__) - {"keep", "show"}:
        assert f"| `--{name}" in text


@pytest.mark.timeout(600)
def test_cells_of_the_page_run(tmp_path: Path, jupyter_environment: dict[str, str]) -> None:
    cells = _CELL.findall(PAGE.read_text("utf-8"))
    kernel = Kernel(str(tmp_path), jupyter_environment)
    outputs: list[Output] = []
    try:
        for cell in cells:
            run = kernel.begin(cell.rstrip("\n"))
            outputs.append(kernel.output(run))
            if cell.startswith("%%wjoin\nSELECT") and "live1" in cell:
                # It runs until it is interrupted.
                kernel.until(lambda: "micro-batch" in "".join(outputs[-1].texts()).split("───")[-1], "rows")
                kernel.manager.interrupt_kernel()
            assert kernel.end(run).status == "ok", outputs[-1].error
        assert kernel.run("pairs.count()").texts() == ["2"]
    finally:
        kernel.close()
    _, first, _, parameters, *_, insert, stop = [each.texts() for each in outputs]
    assert first[-1].splitlines()[-1] == "1 row"
    assert parameters[0].splitlines()[2:] == ["      2", "1 row"]
    assert insert[0].startswith("pairs: stopped at")
    assert stop[0].splitlines()[2].startswith(" pairs │")
