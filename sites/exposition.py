"""Metrics as Prometheus reads them: the text format, version 0.0.4."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Sample = tuple[dict[str, str], float]
"""A value under labels."""


@dataclass(frozen=True)
class Metric:
    """A metric with its values under labels; ``kind`` is "gauge" or "counter"."""

    name: str
    kind: str
    help: str
    samples: tuple[Sample, ...]


def exposition(metrics: Iterable[Metric], label: Callable[[str], str] = str) -> str:
    """Return metrics as a text; ``label`` is what is done to the value of each label first."""
    return "".join(line for each in metrics if each.samples for line in _lines(each, label))


def _lines(metric: Metric, label: Callable[[str], str]) -> Iterator[str]:
    yield f"# HELP {metric.name} {_escaped(metric.help)}\n# TYPE {metric.name} {metric.kind}\n"
    for labels, value in metric.samples:
        inside = ",".join(f'{name}="{_quoted(label(text))}"' for name, text in labels.items())
        yield f"{metric.name}{{{inside}}} {int(value) if isinstance(value, int) else repr(float(value))}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', '\\"')
