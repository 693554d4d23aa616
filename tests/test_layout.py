"""The packages are complete, their arrows point one way, and the wheel holds them all."""

import ast
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.packages import LAYERS, ROOT, listed_packages, module_name, package_name, source_files, tree

# What a layer may import of wjoin, besides itself.
BELOW = {
    "grammar": (),
    "parts": (),
    "udfs": ("grammar",),
    "sites": ("grammar",),
    "planner": ("grammar", "parts", "udfs"),
    "executor": ("planner", "grammar", "parts", "udfs", "sites"),
}
SPARK = ("pyspark", "py4j")
# A folder without Python files, for `wjoin docs`.
DOCUMENTS = {"wjoin.docs": ROOT / "docs"}


def test_every_folder_with_python_files_is_a_listed_package():
    folders = {package_name(path.parent): path.parent for path in source_files()}
    assert listed_packages() == {**folders, **DOCUMENTS}


def test_every_package_has_an_init_file():
    bare = {name for name, folder in listed_packages().items() if not (folder / "__init__.py").is_file()}
    assert bare == DOCUMENTS.keys()


@pytest.mark.parametrize("layer", LAYERS)
def test_layers_import_only_what_lies_below(layer):
    allowed = {f"wjoin.{name}" for name in (layer, *BELOW[layer])}
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in source_files(layer)
        for line, name in _imports(path)
        if name.split(".")[0] == "wjoin" and ".".join(name.split(".")[:2]) not in allowed
    ]
    assert wrong == []


def test_spark_is_imported_only_where_the_executor_and_the_face_meet_it():
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in source_files(*LAYERS)
        if not path.is_relative_to(ROOT / "executor" / "spark")
        for line, name in _imports(path)
        if name.split(".")[0] in SPARK
    ]
    assert wrong == []


def test_layers_are_imported_under_one_name():
    """``import grammar`` would load a second copy of a layer, with classes of its own."""
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in source_files()
        for line, name in _imports(path)
        if name.split(".")[0] in LAYERS
    ]
    assert wrong == []


@pytest.mark.long
@pytest.mark.slow
def test_wheel_holds_every_module_and_nothing_else(wheel):
    modules = {_path_in_wheel(path) for path in source_files()}
    data = {_path_in_wheel(path) for path in _data_files()}
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert {"wjoin/py.typed", "wjoin/grammar/wjoin.lark"} <= data
    assert names == modules | data


@pytest.mark.long
@pytest.mark.slow
def test_wheel_and_checkout_give_the_same_namespace(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    installed = _import_all(tmp_path / "site", tmp_path)
    assert all(Path(place).is_relative_to(tmp_path / "site") for place in installed.values())
    assert installed.keys() == _import_all(ROOT, tmp_path).keys()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel of this source, built in a copy without leftovers of earlier builds."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("wjoin", "docs", *LAYERS):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    target = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", target, source], check=True, stdout=subprocess.DEVNULL)
    (built,) = target.glob("*.whl")
    return built


@cache
def _imports(path: Path) -> list[tuple[int, str]]:
    """Return line and absolute name of everything that the file imports, anywhere in it."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found += ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            found += ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
    return found


def _data_files() -> Iterator[Path]:
    patterns = ("*.lark", "*.sql", "*.css", "*.html", "*.js", "py.typed")  # as in pyproject.toml
    for folder in listed_packages().values():
        for pattern in patterns:
            yield from folder.glob(pattern)
    for pattern in ("*.md", "*.svg", "*.webp"):
        yield from (ROOT / "docs").rglob(pattern)
    yield from (ROOT / "grammar" / "errors.md", ROOT / "wjoin" / "jars" / "wjoin.jar")


def _path_in_wheel(path: Path) -> str:
    if path.suffix == ".jar":
        return path.relative_to(ROOT).as_posix()
    return f"{package_name(path.parent).replace('.', '/')}/{path.name}"


def _import_all(first: Path, folder: Path) -> dict[str, str]:
    """Import every module in a process started in ``folder`` with ``first`` ahead on its path."""
    names = [module_name(path) for path in source_files() if path.name != "__main__.py"]
    code = (
        "import importlib, sys\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "for name in sys.argv[2:]: print(name, importlib.import_module(name).__file__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, first, *names], cwd=folder, check=True, stdout=subprocess.PIPE, text=True
    )
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())
