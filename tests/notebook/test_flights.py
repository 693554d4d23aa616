"""The example notebook runs from its first cell to its last."""

import json
from pathlib import Path

import pytest

from tests.notebook.kernels import LIMIT_SECONDS
from tests.packages import ROOT

pytestmark = pytest.mark.thorough

NOTEBOOKS = ROOT / "examples" / "notebooks"


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_are_committed_without_outputs(path: Path) -> None:
    cells = json.loads(path.read_text())["cells"]
    assert not any(each.get("outputs") or each.get("execution_count") for each in cells)


@pytest.mark.timeout(900)
def test_flights(tmp_path: Path, jupyter_environment: dict[str, str]) -> None:
    import nbformat  # it takes seconds
    from nbclient import NotebookClient

    notebook = nbformat.read(NOTEBOOKS / "flights.ipynb", as_version=4)
    place = {"metadata": {"path": str(tmp_path)}}
    client = NotebookClient(notebook, timeout=2 * LIMIT_SECONDS, resources=place)
    client.execute(env=jupyter_environment)
    shown = {each.id: each.outputs for each in notebook.cells if each.cell_type == "code"}
    texts = [each["data"]["text/plain"] for outputs in shown.values() for each in outputs if "data" in each]
    assert any("0 s <= L - E <= 86400 s" in each or "L - E" in each for each in texts)
    live = next(each for each in texts if each.startswith("planes: "))
    assert live.startswith("planes: stopped at")
    # As many as DuckDB finds with 1_planes.oracle.sql of the demo.
    assert "406 results of the join" in live
    rows = next(each for each in texts if " tailnum │" in each and "│ times" in each)
    assert rows.endswith("the first 5 rows: --limit shows more")
    assert any("image/png" in each.get("data", {}) for outputs in shown.values() for each in outputs)
    assert not [each for outputs in shown.values() for each in outputs if each["output_type"] == "error"]
