"""What the server of the live page answers: the page, its parts, JSON, the text for Prometheus."""

import html
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from importlib.resources import files

from wjoin.planner.explain.page import drawn, explained
from wjoin.planner.explain.page_style import AROUND, STYLE
from wjoin.sites.exposition import CONTENT_TYPE
from wjoin.web.present import QueryState
from wjoin.web.prometheus import exposition
from wjoin.web.told import detail, line

_HTML, _CSS, _SCRIPT = "text/html; charset=utf-8", "text/css; charset=utf-8", "text/javascript; charset=utf-8"
_JSON = "application/json"
_QUERIES = "/api/queries/"


@dataclass(frozen=True)
class ServedQueries:
    """What is served: the queries that ``read`` gives, under addresses that end with ``suffix``."""

    read: Callable[[], Sequence[QueryState]]
    suffix: str


class RefusedRequest(Exception):  # noqa: N818 (an answer)
    """A request that is answered with a status and a line."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status


def answer(site: ServedQueries, path: str, asked: Mapping[str, str]) -> tuple[str, str]:
    """Return the kind and the text of the answer to a request. Raises Refused."""
    if path in _PAGES:
        return _PAGES[path](site)
    run, _, rest = path.removeprefix(_QUERIES).partition("/")
    if path.startswith(_QUERIES) and rest in ("", "plan"):
        known = _named(site, run)
        if rest:
            return _JSON, _plan(known)
        new = detail(known, _float(asked, "since"), _float(asked, "width"))
        return _JSON, json.dumps(new)
    raise RefusedRequest(HTTPStatus.NOT_FOUND, "there is nothing here")


def is_look(path: str) -> bool:
    """Return whether a request tells that somebody looks at the page."""
    return path.startswith("/api/")


def _named(site: ServedQueries, run: str) -> QueryState:
    """Return the query of a run. Raises Refused."""
    for each in site.read():
        if each.run == run:
            return each
    raise RefusedRequest(HTTPStatus.NOT_FOUND, "there is no such query")


def _plan(known: QueryState) -> str:
    documents = dict(known.documents)
    pictures = drawn({str(number): each for number, each in documents.items()})
    return json.dumps({"pictures": pictures, "explained": explained(list(documents.values()))})


def _float(asked: Mapping[str, str], name: str) -> float | None:
    try:
        return float(asked[name])
    except (KeyError, ValueError):
        return None


def _read(name: str) -> str:
    return (files("wjoin.web") / name).read_text("utf-8")


_PAGES: dict[str, Callable[[ServedQueries], tuple[str, str]]] = {
    "/": lambda site: (_HTML, _read("live.html").replace("{suffix}", html.escape(site.suffix))),
    "/live.css": lambda site: (_CSS, "\n".join([AROUND, STYLE, _read("live.css")])),
    "/live.js": lambda site: (_SCRIPT, "\n".join(map(_read, ("numbers.js", "chart.js", "live.js")))),
    "/api/queries": lambda site: (
        _JSON,
        json.dumps({"clock": time.time(), "queries": [line(each) for each in site.read()]}),
    ),
    "/metrics": lambda site: (CONTENT_TYPE, exposition(site.read())),
}
