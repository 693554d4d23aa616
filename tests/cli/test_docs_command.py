"""``wjoin docs``: the pages lead to each other, and show what the documents say."""

import re
import webbrowser
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.packages import ROOT
from wjoin import cli
from wjoin.commands.docs import CONTENTS, contents


class Page(HTMLParser):
    """The links and the names of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links, self.names = [], set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.links += [given[name] for name in ("href", "src") if given.get(name)]
        self.names.add(given.get("id"))


def test_contents_name_every_document():
    named = {path for section in contents((ROOT / CONTENTS).read_text("utf-8")) for _, path in section.pages}
    documents = {
        path.relative_to(ROOT).as_posix()
        for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/papers/*.md"))
    }
    assert documents - {CONTENTS} <= named
    assert all((ROOT / path).exists() for path in named)


def test_pages_lead_to_each_other(tmp_path, capsys):
    assert cli.main(["docs", "--no-browser", "--folder", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path}/docs/start.html\n"
    pages = {path: Page(path) for path in tmp_path.rglob("*.html")}
    assert {"README.html", "start.html", "errors.html", "wjoin2002.html"} <= {path.name for path in pages}
    dead = []
    for path, page in pages.items():
        for link in page.links:
            name, _, anchor = link.partition("#")
            target = (path.parent / name).resolve() if name else path
            if not re.match(r"https?:", link) and not (
                target.is_file() and (not anchor or anchor in pages[target].names)
            ):
                dead.append(f"{path.relative_to(tmp_path)}: {link}")
    assert dead == []
    first = (tmp_path / "docs" / "start.html").read_text("utf-8")
    assert '<span class="k">SELECT</span>' in first
    assert "<table>" in (tmp_path / "grammar" / "errors.html").read_text("utf-8")


def test_a_page_opens_in_the_browser(tmp_path, monkeypatch, capsys):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cli.main(["docs", "joins"]) == 0
    assert opened == [(tmp_path / "wjoin" / "docs" / "docs" / "joins.html").as_uri()]


@pytest.mark.parametrize(("page", "said"), [("joinz", "did you mean joins?"), ("xyz", "kafka, ")])
def test_a_page_that_is_not_there(tmp_path, capsys, page, said):
    assert cli.main(["docs", "--folder", str(tmp_path), page]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"wjoin: there is no page {page}: ") and said in error
