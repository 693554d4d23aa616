"""No module of the face imports itself, however far around, and only its doors know the session."""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter

import pytest

import wjoin
from tests.packages import ROOT, module_name, source_files, tree

DOORS = {
    *("wjoin", "wjoin.bridge", "wjoin.cli", "wjoin.connecting"),
    "wjoin.commands.spark_start",
    *("wjoin.notebook.cell", "wjoin.notebook.sessions"),
}
"""The modules that import the session: what users import, the command line and what makes one for it, the
process that a Spark of others starts, and the cells of notebooks. The shell, wjoin.shell, is one of them as a
whole."""

Imports = Mapping[str, set[str]]


def test_no_module_of_the_face_imports_itself_around_others():
    # Raises CycleError with the modules of a cycle.
    order = [*TopologicalSorter(_imports_of_the_face()).static_order()]
    assert "wjoin.session" in order


def test_no_room_of_the_face_imports_itself_around_others():
    rooms: dict[str, set[str]] = {}
    for name, found in _imports_of_the_face().items():
        if (room := _room(name)) is not None:
            rooms.setdefault(room, set()).update(filter(None, map(_room, found)))
    order = [*TopologicalSorter({room: found - {room} for room, found in rooms.items()}).static_order()]
    assert order.index("spark") < order.index("statements") < order.index("shell")


def test_only_the_doors_import_the_session():
    importers = {name for name, found in _imports_of_the_face().items() if "wjoin.session" in found}
    assert {name for name in importers if not name.startswith("wjoin.shell.")} == DOORS


@pytest.mark.parametrize(
    "first",
    [
        "from wjoin.b import thing",
        "import wjoin.b",
        "from wjoin import b",
        "def late():\n    from wjoin.b import thing",
        "if TYPE_CHECKING:\n    from wjoin.b import Thing",
    ],
)
def test_a_cycle_is_found_wherever_the_import_stands(first: str):
    files = {"wjoin.a": first, "wjoin.b": "from wjoin.a import thing"}
    graph = {name: {*_imported(ast.parse(text), set(files))} for name, text in files.items()}
    with pytest.raises(CycleError):
        TopologicalSorter(graph).prepare()


@cache
def _imports_of_the_face() -> Imports:
    """Return for each module of wjoin/ those of wjoin/ that it imports, anywhere in it."""
    paths = {module_name(path): path for path in source_files("wjoin")}
    graph = {name: {*_imported(tree(path), set(paths))} for name, path in paths.items()}
    # What the package gives by name it imports when it is first asked.
    graph["wjoin"] |= set(wjoin._HOMES.values()) & set(paths)
    return graph


def _room(name: str) -> str | None:
    """Return the folder of wjoin/ in which a module lies, None for those above all rooms."""
    room = name.split(".")[1] if name.count(".") else None
    return room if room is not None and (ROOT / "wjoin" / room).is_dir() else None


def _imported(tree: ast.Module, known: set[str]) -> Iterator[str]:
    """Yield the known modules that a file imports: at its head, inside functions, and for types only."""
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            modules = [f"{node.module}.{alias.name}" for alias in node.names]
            # ``from package import name``: a module of it, or something that its __init__ has.
            names = [each if each in known else node.module for each in modules]
        yield from (name for name in names if name in known)
