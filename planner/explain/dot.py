"""A document as Graphviz DOT: its window graph and its plan."""

from collections.abc import Iterator, Mapping, Sequence

from wjoin.grammar.plurals import counted
from wjoin.planner.explain import phrases
from wjoin.planner.explain.document import Document, StageEntry
from wjoin.planner.explain.markup import clean
from wjoin.planner.explain.phrases import Kind, Link
from wjoin.planner.figures import figure

_STYLES = {
    Kind.GIVEN: {"style": "solid"},
    Kind.PARTLY: {"style": "solid"},
    Kind.TIGHTENED: {"style": "bold", "color": "#b45309", "fontcolor": "#b45309"},
    Kind.DERIVED: {"style": "dashed", "color": "#64748b", "fontcolor": "#475569"},
    Kind.FREE: {"style": "dotted", "color": "#94a3b8", "fontcolor": "#64748b"},
}
_FONT = {"fontname": "Helvetica,Arial,sans-serif", "fontsize": "11"}


def dot(document: Document) -> str:
    """Return the window graph and the plan of a document as a digraph of Graphviz."""
    body = [
        f"node [{_attributes(shape='box', style='rounded', **_FONT)}]",
        f"edge [{_attributes(**_FONT)}]",
        f"graph [{_attributes(rankdir='LR', compound='true', **_FONT)}]",
        *_windows(document),
        *_cluster("plan", "Plan", _plan(document)),
    ]
    return "\n".join(["digraph wjoin {", *(f"  {line}" for line in body), "}", ""])


def quoted(text: str) -> str:
    """Return a text as a quoted string of DOT that shows it as it is.

    >>> print(quoted('say "a\\\\b" & go'))
    "say \\"a\\\\b\\" &amp; go"
    """
    safe = clean(text).replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
    return '"' + safe.replace("\r", "").replace("\n", "\\n") + '"'


def _attributes(**values: str) -> str:
    return ", ".join(f"{name}={quoted(value)}" for name, value in values.items())


def _lines(texts: Sequence[str]) -> str:
    return "\n".join(" ".join(text.split()) for text in texts if text)


def _cluster(name: str, label: str, body: Iterator[str]) -> Iterator[str]:
    yield f"subgraph {quoted(f'cluster_{name}')} {{"
    yield f"  label={quoted(label)}"
    yield from (f"  {line}" for line in body)
    yield "}"


def _windows(document: Document) -> Iterator[str]:
    found = phrases.alternatives(document)
    for number, links in enumerate(found, start=1):
        title = "Windows" if len(found) == 1 else f"Windows, alternative {number} of {len(found)}"
        yield from _cluster(f"windows_{number}", title, _window_graph(document, links, number))


def _window_graph(document: Document, links: Sequence[Link], number: int) -> Iterator[str]:
    places = {each.alias: f"w{number}_{place}" for place, each in enumerate(document.streams)}
    kept = _retention(document)
    for each in document.streams:
        lines = [phrases.shown(each), phrases.rate(document, each), kept.get(each.alias, "")]
        yield f"{places[each.alias]} [{_attributes(label=_lines(lines))}]"
    for link in links:
        yield f"{places[link.first]} -> {places[link.second]} [{_attributes(**_edge(link))}]"


def _edge(link: Link) -> Mapping[str, str]:
    lines = [link.interval, link.origin if link.kind is not Kind.GIVEN else ""]
    return {
        "label": _lines(lines),
        "tooltip": link.hint,
        "dir": "forward" if link.directed else "none",
        **_STYLES[link.kind],
    }


def _retention(document: Document) -> dict[str, str]:
    """Return how long the rows of each stream are kept that a stage reads."""
    inputs = [each for stage in document.stages for each in stage.inputs if each.stage is None]
    return {each.members[0]: phrases.retention(document, each) for each in inputs}


def _plan(document: Document) -> Iterator[str]:
    later = phrases.after_stages(document)
    names = {each.alias: f"p_{place}" for place, each in enumerate(document.streams)}
    for each in document.streams:
        lines = [phrases.shown(each), *(f"filter {text}" for text in each.filters)]
        yield f"{names[each.alias]} [{_attributes(label=_lines(lines), shape='cylinder')}]"
    for number, stage in enumerate(document.stages):
        yield from _stage(document, stage, number, names)
    first = next(names[each.alias] for each in document.streams if each not in later)
    last = f"s_{len(document.stages) - 1}" if document.stages else first
    yield from _rest(document, last, [names[each.alias] for each in later])


def _stage(document: Document, stage: StageEntry, number: int, names: dict[str, str]) -> Iterator[str]:
    title = phrases.hop_title(stage, number + 1) or f"stage {number + 1}"
    title = "Spark's own two-way joins" if document.native else title
    choices = [f"{part.name} {part.value}" for part in stage.parts]
    calls = [f"call {each.condition}" for each in stage.calls]
    lines = _lines([title, *choices, *stage.notes, *phrases.orders(stage), *calls])
    yield f"s_{number} [{_attributes(label=lines, style='bold')}]"
    for each in stage.inputs:
        source = names[each.members[0]] if each.stage is None else f"s_{each.stage - 1}"
        label = _lines([phrases.input_words(each), phrases.retention(document, each)])
        yield f"{source} -> s_{number} [{_attributes(label=label)}]"


def _rest(document: Document, source: str, later: Sequence[str]) -> Iterator[str]:
    """Yield what Spark does after the stages, and the result."""
    if later or document.residual:
        checks = [f"check {text}" for text in document.residual]
        title = "Spark join" if later else "Spark filter"
        yield f"spark [{_attributes(label=_lines([title, *checks]))}]"
        yield from (f"{each} -> spark" for each in [source, *later])
        source = "spark"
    results = f"{counted(figure(document.chosen.results), 'row')}{document.per}"
    yield f"result [{_attributes(label=_lines(['result', results]), shape='box', style='filled')}]"
    yield f"{source} -> result"
