"""All SQL of the tests, the docs, the examples and the benchmarks, as it stands in their files."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```sql\n(.*?)^```", re.DOTALL | re.MULTILINE)
_SQL = re.compile(
    r"\b(SELECT|CREATE|INSERT|EXPLAIN|WINDOW|DWINDOW|PATH|ALTER|ANALYZE|SHOW|SET)\b\s", re.IGNORECASE
)
_PUT_IN = re.compile(r"\{\w*\}")
_LONGEST = 3000


@cache
def corpus() -> tuple[str, ...]:
    """Return every piece of SQL once, in an order that does not change."""
    found: dict[str, None] = {}
    for each in _pieces():
        text = _PUT_IN.sub("x", each).strip()
        if _SQL.search(text) and " " in text and len(text) < _LONGEST:
            found.setdefault(text)
    return tuple(sorted(found))


def _pieces() -> Iterator[str]:
    for path in _files("*.md"):
        yield from _BLOCK.findall(path.read_text("utf-8"))
    for path in _files("*.sql"):
        yield from re.split(r";\s*\n", path.read_text("utf-8", errors="surrogatepass"))
    for path in _files("*.py"):
        yield from _strings(ast.parse(path.read_text("utf-8")))


def _files(pattern: str) -> list[Path]:
    places = (ROOT / name for name in ("tests", "docs", "examples", "benchmarks"))
    inside = sorted(path for place in places for path in place.rglob(pattern))
    return [*inside, *sorted(ROOT.glob(pattern))]


def _strings(tree: ast.AST) -> Iterator[str]:
    """Yield the strings of a module; what is put into one is a word there."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "x" for part in node.values)
            yield "".join(map(str, parts))
