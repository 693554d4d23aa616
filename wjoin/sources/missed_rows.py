"""Tells what an approximate join of two streams at sites has missed, as the reader of one measures it."""

import json
from dataclasses import dataclass
from pathlib import Path

from wjoin.executor.sites.likely import REPORT
from wjoin.executor.sites.missed import Missing
from wjoin.grammar.errors import WJoinWarning
from wjoin.grammar.plurals import counted
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.spark.notices import tell

KNOWN = 5
"""Micro-batches after which it is told."""

_MORE, _WORTH = 1.5, 0.02
"""How many times what was told before, and what share of the results above that, is worth telling again."""


@dataclass
class MissedRows:
    """What the join of two streams, in words ``subject``, misses; ``folder``: where their readers tell it."""

    subject: str
    folder: Path
    told: float = 0.0

    def look(self) -> None:
        """Tell once something is known, and again when it has become far more."""
        words = missed_words(self.folder)
        if words is None or words[0] < _WORTH + _MORE * self.told:
            return
        self.told = words[0]
        tell(WJoinWarning("WJ825", f"{self.subject} is approximate (as it was asked): {words[1]}"))


def missed_rows(plan: PhysicalPlan, folder: Path) -> MissedRows | None:
    """Return what tells what a join misses, None for one that misses nothing."""
    names = [each.alias for each in plan.streams if each.site is not None and each.site.likely is not None]
    return MissedRows(f"the join of {' and '.join(names)}", folder) if names else None


def missed_words(folder: Path) -> tuple[float, str] | None:
    """Return the share of the results that is missed, and that in words; None where it is not known yet."""
    try:
        told = json.loads((folder / REPORT).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    if told["batches"] < KNOWN:
        return None
    share, least, most = Missing(told["results"], told["spread"]).error(told["found"])
    words = f"about {share:.1%} of the results lost, {100 * least:.1f} to {100 * most:.1f} %"
    if told["late"]:
        words += f"; {counted(told['late'], 'late row')} dropped"
    return share, words
