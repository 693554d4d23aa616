"""``wjoin docs``: the documents as pages in a browser, without a network or a server.

The wheel has the folder docs/ as it is, beside grammar/errors.md; README is the description of the
distribution. The pages lie to each other as the documents do, so their links stay as they are.
"""

import argparse
import html
import importlib.metadata
import posixpath
import re
import sys
import webbrowser
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from itertools import pairwise
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

import wjoin
from wjoin.grammar.suggestions import suggestion
from wjoin.spark.class_archive import archive_folder

CONTENTS = "docs/README.md"
"""The document that lists all others, by sections."""

_SECTION = re.compile(r"^## (.+)$|^- \[(.+?)\]\(([^)]+)\)", re.MULTILINE)
_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} - wjoin {version}</title><link rel="stylesheet" href="{root}docs.css"></head>
<body><nav><a href="{root}docs/README.html"><b>wjoin {version}</b></a>{links}</nav>
<main>{body}</main></body></html>
"""


@dataclass(frozen=True)
class Section:
    """A section of the contents: the title and the path of each document, as in the repository."""

    name: str
    pages: tuple[tuple[str, str], ...]


def contents(text: str) -> list[Section]:
    """Return the sections of the contents, in their order."""
    sections: list[tuple[str, list[tuple[str, str]]]] = []
    for name, title, path in _SECTION.findall(text):
        if name:
            sections.append((name, []))
        else:
            path = posixpath.normpath(posixpath.join(posixpath.dirname(CONTENTS), path))
            sections[-1][1].append((title, path))
    return [Section(name, tuple(pages)) for name, pages in sections]


def write_pages(folder: Path) -> list[Path]:
    """Write all documents that are installed as pages into a folder; return the pages."""
    files = dict(_files())
    texts = {path: file.read_text("utf-8") for path, file in files.items() if path.endswith(".md")}
    texts["README.md"] = _readme()
    sections = contents(texts[CONTENTS])
    pages = {
        folder / _page_of(path): _page(path, text, sections, {*texts, *files}) for path, text in texts.items()
    }
    for page, text in pages.items():
        _write(page, text.encode())
    for path, file in files.items():
        if path not in texts:
            _write(folder / path, file.read_bytes())
    _write(folder / "docs.css", (resources.files("wjoin.web") / "docs.css").read_bytes())
    return sorted(pages)


def show_docs(options: argparse.Namespace) -> int:
    """Write the pages, open one in a browser, and print where it is; return the exit status."""
    folder = (options.folder or archive_folder() / "docs").absolute()
    asked = options.page.removesuffix(".md")
    names = {path.stem: path for path in write_pages(folder) if path.stem != "README"}
    if asked not in names:
        print(
            f"wjoin: there is no page {asked}: {suggestion(asked, names) or ', '.join(names)}",
            file=sys.stderr,
        )
        return 2
    print(names[asked])
    if options.browser:
        webbrowser.open(names[asked].as_uri())
    return 0


def _files() -> Iterator[tuple[str, Traversable]]:
    """Yield the path in the repository, and the file, of all that is installed."""
    yield "grammar/errors.md", resources.files("wjoin.grammar") / "errors.md"
    yield from _below("docs", resources.files("wjoin.docs"))


def _below(path: str, folder: Traversable) -> Iterator[tuple[str, Traversable]]:
    for each in folder.iterdir():
        if each.is_dir():
            yield from _below(f"{path}/{each.name}", each)
        else:
            yield f"{path}/{each.name}", each


def _readme() -> str:
    """Return README: of the checkout, or as it was installed."""
    checkout = Path(wjoin.__file__).parent.parent / "README.md"
    if (checkout.parent / "grammar").is_dir():
        return checkout.read_text("utf-8")
    return str(importlib.metadata.metadata("wjoin").json["description"])


def _page(path: str, text: str, sections: list[Section], known: set[str]) -> str:
    reader = MarkdownIt("commonmark", {"highlight": _coloured}).enable("table")
    tokens = reader.parse(text)
    seen: dict[str, int] = {}
    for token, after in pairwise(tokens):
        if token.type == "heading_open":
            token.attrSet("id", _anchor(after.content, seen))
    for token in tokens:
        _lead(token.children or [], path, known)
    root = "../" * path.count("/")
    title = next((title for section in sections for title, page in section.pages if page == path), path)
    return _PAGE.format(
        title=html.escape(title),
        version=wjoin.__version__,
        root=root,
        links=_links(path, root, sections, known),
        body=reader.renderer.render(tokens, reader.options, {}),
    )


def _links(here: str, root: str, sections: list[Section], known: set[str]) -> str:
    lines: list[str] = []
    for section in sections:
        lines.append(f"<h2>{html.escape(section.name)}</h2><ul>")
        for title, path in section.pages:
            if path in known:
                current = ' aria-current="page"' if path == here else ""
                lines.append(f'<li><a href="{root}{_page_of(path)}"{current}>{html.escape(title)}</a></li>')
        lines.append("</ul>")
    return "\n".join(lines)


def _lead(tokens: list[Token], path: str, known: set[str]) -> None:
    """Let links lead to pages; of those to what is not installed only the text stays."""
    dead = False
    for token in tokens:
        if token.type == "link_open":
            place, anchor = _target(str(token.attrGet("href")), path, known)
            dead = place is None
            token.attrs = {} if place is None else {"href": place + anchor}
        if token.type in ("link_open", "link_close") and dead:
            token.tag = "span"


def _target(link: str, path: str, known: set[str]) -> tuple[str | None, str]:
    """Return where a link leads, or None, and its anchor."""
    name, mark, anchor = link.partition("#")
    if not name or ":" in name:
        return name, mark + anchor
    meant = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
    for each, suffix in ((meant, ""), (f"{meant}/README.md", "/README.md")):
        if each in known:
            return _page_of(name.rstrip("/") + suffix), mark + anchor
    return None, ""


def _page_of(path: str) -> str:
    return f"{path.removesuffix('.md')}.html" if path.endswith(".md") else path


def _anchor(heading: str, seen: dict[str, int]) -> str:
    name = re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
    seen[name] = seen.get(name, -1) + 1
    return f"{name}-{seen[name]}" if seen[name] else name


def _coloured(code: str, language: str, attributes: Any) -> str:
    try:
        lexer = get_lexer_by_name(language)
    except ClassNotFound:
        return html.escape(code)
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True)))


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
