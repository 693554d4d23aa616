"""The summaries that there are, by name, in the order in which they are told."""

from wjoin.parts.summaries.base import BaseSummary
from wjoin.parts.summaries.bloom import BloomSummary
from wjoin.parts.summaries.digest import DigestSummary
from wjoin.parts.summaries.summary import Summary

SUMMARIES: dict[str, type[Summary]] = {each.name: each for each in (BaseSummary, BloomSummary, DigestSummary)}
