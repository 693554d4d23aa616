"""The example with pictures finds what NumPy finds, by every route, and its page shows it."""

import re
from pathlib import Path

import pytest
from check import Check
from frames import CAMERAS, write_frames
from PIL import Image
from pyarrow import parquet
from run import Runs
from sheet import write_sheet

import wjoin
from tests.packages import ROOT

pytestmark = pytest.mark.thorough

FOLDER = ROOT / "examples" / "pictures"
PAGE = ROOT / "docs" / "pictures.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("pictures")
    write_frames(made, scenes=200)
    return made


def test_what_is_alike_mostly_shows_one_place(folder: Path) -> None:
    alike, one_place = (set(each) for each in (Check(folder).alike, Check(folder).one_place))
    assert len(one_place) > 100
    assert len(alike & one_place) >= 0.95 * len(one_place)
    assert len(alike - one_place) <= 0.02 * len(alike)


@pytest.mark.parametrize("camera", CAMERAS)
def test_no_frame_is_late(folder: Path, camera: str) -> None:
    """Rows are out of order, also from file to file, by less than the delay of the stream."""
    files = sorted((folder / "data" / camera).iterdir(), key=lambda path: path.stat().st_mtime)
    assert len(files) > 1
    times = [time.timestamp() for path in files for time in parquet.read_table(path)["ts"].to_pylist()]
    latest = 0.0
    behind = []
    for time in times:
        behind.append(latest - time)
        latest = max(latest, time)
    assert 0 < max(behind) <= 5


@pytest.mark.parametrize("plan", ["", "PSP", "ATR", "CTR"])
def test_every_route_finds_what_numpy_finds(session: wjoin.Session, folder: Path, plan: str) -> None:
    runs = Runs(session, folder, band=False)
    wanted = Check(folder).alike
    assert runs.stream(plan).combinations == wanted
    assert runs.tables(plan).combinations == wanted


def test_bands_on_brightness_lose_nothing(session: wjoin.Session, folder: Path) -> None:
    runs = Runs(session, folder, band=True)
    assert runs.tables("").combinations == Check(folder).alike
    near = re.findall(r"abs\(.*?\) <= [\d.]+", PAGE.read_text("utf-8"))
    assert len(near) == 2
    assert all(each in runs.select for each in near)


def test_sheet(folder: Path, tmp_path: Path) -> None:
    write_sheet(tmp_path / "sheet.webp", Check(folder))
    for path in (tmp_path / "sheet.webp", ROOT / "docs" / "pictures.webp"):
        assert path.stat().st_size < 150_000
        with Image.open(path) as image:
            assert image.width > 800


@pytest.mark.long
def test_page_has_the_statement_of_the_script() -> None:
    (block,) = re.findall(r"```sql\n(SELECT A\.id.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert block in (FOLDER / "cameras.sql").read_text("utf-8")
