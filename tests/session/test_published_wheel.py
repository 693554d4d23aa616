"""What README and the metadata of a published wheel lead to, by scripts/wheel.py."""

import importlib.util
import re
import shutil
import tomllib
from pathlib import Path

from tests.packages import ROOT

AT = "https://example.org/team/wjoin"


def test_links_lead_to_files_of_the_repository(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("wheel", ROOT / "scripts" / "wheel.py")
    assert spec is not None and spec.loader is not None
    wheel = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(wheel)
    for name in ("README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    wheel._publish_at(AT, tmp_path)
    readme = (tmp_path / "README.md").read_text("utf-8")
    links = re.findall(r"\]\(([^)\s]+)", readme)
    assert not [each for each in links if not each.startswith(("https://", "#"))]
    urls = tomllib.loads((tmp_path / "pyproject.toml").read_text("utf-8"))["project"]["urls"]
    ours = [each for each in (*links, *urls.values()) if each.startswith(AT + "/")]
    assert len(ours) > 20
    for each in ours:
        assert (ROOT / each.removeprefix(AT).split("/HEAD/")[1].partition("#")[0]).exists(), each
