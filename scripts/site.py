"""Lays out the documents of the repository as the source of the site: README, docs/, errors and examples.

Links between documents are those of the repository; where a document lies elsewhere in the site, they are
rewritten. The navigation is that of docs/README.md. Run by ``make site``.
"""

import json
import os
import posixpath
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from wjoin.commands.docs import CONTENTS, contents

ROOT = Path(__file__).parent.parent
_RENAMED = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "grammar/errors.md": "errors.md",
    "docs/README.md": "contents.md",
    "docs/design/README.md": "design/index.md",
}
_LINK = re.compile(r"(\]\(|src=\")([^)\s\"#]+)(?=[)#\"])")
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_EXAMPLES = ("*.sql", "*.py", "*.ipynb", "*.toml", "*.md")
_TRANSLATED = {".sql": "sql", ".py": "python", ".toml": "toml"}


def place(path: str) -> str:
    """Return where a file of the repository lies in the site."""
    path = _RENAMED.get(path, path.removeprefix("docs/"))
    if path == "examples":
        return "examples/index.md"
    # What is no page of its own is shown as one.
    return f"{path}.md" if path.startswith("examples/") and Path(path).suffix in _TRANSLATED else path


def rewritten(text: str, source: str) -> str:
    """Return a document with its links as they are in the site; ``source`` is its path in the repository."""
    fences = [found.span() for found in _FENCE.finditer(text)]

    def link(found: re.Match[str]) -> str:
        target = found[2]
        if "://" in target or target.startswith("mailto:") or any(a <= found.start() < b for a, b in fences):
            return found[0]
        meant = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        here = posixpath.dirname(place(source)) or "."
        return found[1] + posixpath.relpath(place(meant), here)

    return _LINK.sub(link, text)


def _documents() -> Iterator[Path]:
    yield from (ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "grammar/errors.md"))
    yield from sorted((ROOT / "docs").rglob("*.md"))


def navigation() -> str:
    """Return the navigation of the site as MkDocs has it: a section of the contents is one of the site."""
    lines = ["nav:"]
    for section in contents((ROOT / CONTENTS).read_text("utf-8")):
        lines.append(f"  - {json.dumps(section.name)}:")
        lines += (f"      - {json.dumps(title)}: {place(path)}" for title, path in section.pages)
    return "\n".join([*lines, ""])


def main(target: Path) -> None:
    """Write the source of the site into a folder, in place of what is there; its configuration beside it."""
    shutil.rmtree(target, ignore_errors=True)
    _write(target.with_name("mkdocs.yml"), (ROOT / "mkdocs.yml").read_text("utf-8") + navigation())
    for path in _documents():
        source = path.relative_to(ROOT).as_posix()
        _write(target / place(source), rewritten(path.read_text("utf-8"), source))
    for path in (ROOT / "docs").rglob("*"):
        if path.is_file() and path.suffix != ".md":
            copied = target / place(path.relative_to(ROOT).as_posix())
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copied)
    shutil.copytree(ROOT / "scripts" / "site", target / "assets")
    _examples(target)


def _examples(target: Path) -> None:
    """Write a page for each example, and a list of them."""
    lines = ["# Examples", ""]
    found = sorted({path for pattern in _EXAMPLES for path in (ROOT / "examples").rglob(pattern)})
    for path in found:
        source = path.relative_to(ROOT).as_posix()
        text = path.read_text("utf-8")
        if path.suffix == ".md":
            _write(target / source, rewritten(text, source))
        elif path.suffix in _TRANSLATED:
            _write(target / place(source), f"# {path.name}\n\n```{_TRANSLATED[path.suffix]}\n{text}```\n")
        else:
            (target / source).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target / source)
        shown = os.path.relpath(path, ROOT / "examples")
        lines.append(f"- [{shown}]({posixpath.relpath(place(source), 'examples')})")
    _write(target / "examples" / "index.md", "\n".join([*lines, ""]))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
