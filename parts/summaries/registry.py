"""The summaries that there are, by name, in the order in which they are told."""

from wjoin.parts.summaries.base import BaseSummary
from wjoin.parts.summaries.bloom import BloomSummary
from wjoin.parts.summaries.dft import DftSummary
from wjoin.parts.summaries.dftt import DfttSummary
from wjoin.parts.summaries.digest import DigestSummary
from wjoin.parts.summaries.sketch import CountSketchSummary, SketchSummary
from wjoin.parts.summaries.summary import Summary

SUMMARIES: dict[str, type[Summary]] = {
    each.name: each
    for each in (
        BaseSummary,
        DftSummary,
        DfttSummary,
        BloomSummary,
        SketchSummary,
        CountSketchSummary,
        DigestSummary,
    )
}
