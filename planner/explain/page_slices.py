"""How slices of event time lie on workers: which keep each of them, and where the rows of one go."""

from wjoin.planner.explain.document import DealtEntry
from wjoin.planner.explain.markup import Markup, tag
from wjoin.planner.explain.phrases import Lying


def slices_picture(dealt: DealtEntry, title: str) -> Markup:
    """Return the drawing: a bar of time cut into slices, and a table of rows by workers below it."""
    workers = range(1, len(dealt.rows[0].workers) + 1)
    heads = [*map(str, workers), *(["…"] if dealt.more else [])]
    rows = [
        tag(
            "tr",
            tag("td", f"a row of {' '.join(each.members)}"),
            *(
                tag("td", _sign(word, f"worker {worker}: {word}"))
                for worker, word in zip(workers, each.workers, strict=True)
            ),
        )
        for each in dealt.rows
    ]
    head = tag("tr", tag("th", "worker"), *(tag("th", each) for each in heads))
    bar = tag("div", "slices, by worker ", *_slices(dealt), " …")
    return tag("div", bar, tag("table", head, *rows), class_="slices", role="group", aria_label=title)


def slices_legend(dealt: DealtEntry) -> Markup:
    """Return what the signs that occur mean."""
    found = {word for each in dealt.rows for word in each.workers}
    words: list[str] = [f"a row near the end of slice {dealt.place}:", " "]
    for each in Lying:
        if each.value in found:
            words += [tag("span", _sign(each.value), f" a worker {each.value}", class_="key"), " "]
    return tag("p", *words, class_="legend")


def _slices(dealt: DealtEntry) -> list[Markup]:
    """Return the slices with the names of the workers that keep their rows."""
    found = []
    for number, each in enumerate(dealt.slices, start=1):
        name = ", ".join(map(str, each))
        drawn = "slice own" if number == dealt.place else "slice"
        found.append(tag("span", name, class_=drawn, title=f"slice {number} is stored on {name}"))
    return found


def _sign(word: str, hint: str | None = None) -> Markup:
    """Return what stands for what a worker does with a row, nothing where it does not get it."""
    return tag("span", class_=f"sign {Lying(word).name.lower()}", title=hint) if word else Markup("")
