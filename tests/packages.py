"""What the project consists of, read from its folders and from pyproject.toml."""

import ast
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LAYERS = ("grammar", "parts", "planner", "executor", "udfs", "sites")


def listed_packages() -> dict[str, Path]:
    """Return the folder of every package that pyproject.toml lists."""
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    folders = setuptools["package-dir"]
    return {name: _folder(name, folders) for name in setuptools["packages"]}


def _folder(package: str, folders: dict[str, str]) -> Path:
    parent, _, last = package.rpartition(".")
    return ROOT / folders[package] if package in folders else _folder(parent, folders) / last


def package_name(folder: Path) -> str:
    """Return the name under which ``folder`` is imported."""
    parts = folder.relative_to(ROOT).parts
    return ".".join(parts if parts[0] == "wjoin" else ("wjoin", *parts))


def source_files(*layers: str) -> Iterator[Path]:
    """Yield every Python file of the layers, in order; of all layers and the face when none is named."""
    for layer in layers or ("wjoin", *LAYERS):
        yield from sorted((ROOT / layer).rglob("*.py"))


@cache
def tree(path: Path) -> ast.Module:
    """Return what a Python file consists of."""
    return ast.parse(path.read_text("utf-8"), str(path.relative_to(ROOT)))


def module_name(path: Path) -> str:
    """Return the name under which the Python file ``path`` is imported."""
    package = package_name(path.parent)
    return package if path.name == "__init__.py" else f"{package}.{path.stem}"
