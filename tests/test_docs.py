"""What the documents say is true: links lead somewhere, SQL parses, examples in docstrings run."""

import doctest
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.said import declared, plan_said
from tests.packages import ROOT, module_name, source_files
from wjoin.grammar.errors import WJoinError, catalogue
from wjoin.grammar.parser import parse_script
from wjoin.grammar.spans import Span

ERRORS = ROOT / "grammar" / "errors.md"
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ERRORS, *sorted((ROOT / "docs").rglob("*.md"))]
_MODULES_WITH_EXAMPLES = [
    *(module_name(path) for path in source_files() if ">>> " in path.read_text("utf-8")),
    *(f"tests.kit.{path.stem}" for path in ROOT.glob("tests/kit/*.py") if ">>> " in path.read_text("utf-8")),
]
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_SQL_BLOCK = re.compile(r"^```sql\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_NAMED_FILE = re.compile(
    r"(?<![\w./])((?:grammar|planner|parts|executor|udfs|sites|wjoin|tests|benchmarks)/[\w/]+\.\w+)"
)
_HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)


def test_every_row_of_the_errors_document_is_in_the_catalogue_and_in_order():
    codes = re.findall(r"WJ\d{3}(?= \|)", ERRORS.read_text("utf-8"))
    assert codes == sorted(catalogue())
    assert all(entry.code and entry.title and entry.remedy for entry in catalogue().values())


def test_example_of_the_errors_document_is_what_is_printed():
    statement = "SELECT * FROM a, b WINDOW (a, b) = 5 WHERE a.k = b.k"
    message = "5 has no unit, but the streams' event time is a timestamp"
    place = statement.index("5")
    error = WJoinError("WJ304", message, span=Span(place, place + 1), text=statement, source_name="query.sql")
    assert error.render() in ERRORS.read_text("utf-8")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(document):
    text = _FENCE.sub("", document.read_text("utf-8"))
    targets = [link for link in _LINK.findall(text) if "://" not in link and not link.startswith("mailto:")]
    assert [target for target in targets if not _leads_somewhere(document, target)] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_named_files_exist(document):
    named = {name.split("::")[0] for name in _NAMED_FILE.findall(document.read_text("utf-8"))}
    assert sorted(name for name in named if not (ROOT / name).exists()) == []


def _sql_blocks() -> Iterator[object]:
    for document in DOCUMENTS:
        text = document.read_text("utf-8")
        for block in _SQL_BLOCK.finditer(text):
            line = text.count("\n", 0, block.start()) + 1
            yield pytest.param(block.group(1), id=f"{document.name}:{line}")


@pytest.mark.parametrize("sql", [*_sql_blocks()])
def test_sql_blocks_parse(sql):
    assert parse_script(sql)


@pytest.mark.parametrize("name", ["from-spark", "from-flink", "from-ksqldb"])
def test_statements_of_others_have_the_windows_of_ours(name):
    declarations, *statements = _SQL_BLOCK.findall((ROOT / "docs" / f"{name}.md").read_text("utf-8"))
    streams = {each.name.name: declared(each) for each in parse_script(declarations)}
    assert statements
    for theirs, ours in zip(statements[::2], statements[1::2], strict=True):
        first, second = plan_said(theirs, streams), plan_said(ours, streams)
        assert first.graph.windows == second.graph.windows
        assert first.physical.kind is second.physical.kind


@pytest.mark.parametrize("module", _MODULES_WITH_EXAMPLES)
def test_examples_in_docstrings_run(module):
    failed, tried = doctest.testmod(importlib.import_module(module), optionflags=doctest.ELLIPSIS)
    assert tried
    assert not failed


def _leads_somewhere(document: Path, target: str) -> bool:
    name, _, anchor = target.partition("#")
    path = (document.parent / name).resolve() if name else document
    if not path.exists():
        return False
    return not anchor or path.suffix != ".md" or anchor in _anchors(path.read_text("utf-8"))


def _anchors(text: str) -> set[str]:
    """Return the names of a document's headings as they appear in links."""
    headings = _HEADING.findall(_FENCE.sub("", text))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
