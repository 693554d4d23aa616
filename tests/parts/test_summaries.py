"""Summaries: sums of slices, rows that leave, what travels, and what is known for certain."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.tiers import examples
from wjoin.parts.summaries.compact_sets import packed, size_of, unpacked
from wjoin.parts.summaries.dft import DftSummary, cells_of, length
from wjoin.parts.summaries.dftt import DfttSummary, likely_lossless
from wjoin.parts.summaries.exact_counts import Counts
from wjoin.parts.summaries.patches import patch, patched
from wjoin.parts.summaries.registry import SUMMARIES
from wjoin.parts.summaries.series import SlidingTransform
from wjoin.parts.summaries.summary import HEADER, Form, similarity

NAMES = st.sampled_from(list(SUMMARIES))
KEYS = st.one_of(
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.integers(0, 40),
    st.integers(-3, 3).map(lambda each: each << 40),
)
CODES = st.lists(KEYS, max_size=60).map(lambda each: np.array(each, np.int64))
FORMS = st.builds(Form, st.integers(40, 2000), st.integers(0, 5), st.integers(8, 100))


def same(first, second) -> bool:
    return first.rows == second.rows and all(
        np.allclose(mine, other, atol=1e-6)
        for mine, other in zip(first.arrays(), second.arrays(), strict=True)
    )


@given(NAMES, FORMS, CODES, CODES)
def test_rows_that_have_come_and_gone_leave_nothing(name, form, kept, gone):
    only = SUMMARIES[name].empty(form).add(kept)
    assert same(only.add(gone).remove(gone), only)


def test_full_counters_of_a_bloom_filter_share_the_rows_that_no_others_have():
    form = Form(1 << 10, rows=600)
    summary = SUMMARIES["bloom"].empty(form).add(np.append(np.arange(300), np.repeat([1000], 300)))
    found = SUMMARIES["bloom"].view(form, summary.to_bytes()).expected(np.array([1000, 3, 5000]))
    assert found[0] == pytest.approx(301, abs=15)
    assert 1 <= found[1] < 15 and found[2] < 3


@given(NAMES, FORMS, CODES, CODES)
def test_the_sum_of_two_is_the_summary_of_all(name, form, first, second):
    kind = SUMMARIES[name]
    together = kind.empty(form).add(first).plus(kind.empty(form).add(second))
    assert same(together, kind.empty(form).add(np.concatenate([second, first])))


@given(NAMES, FORMS, CODES)
def test_what_travels_keeps_to_its_size(name, form, codes):
    assert len(SUMMARIES[name].empty(form).add(codes).to_bytes()) <= max(form.size, 64) + HEADER


@given(NAMES, FORMS, CODES, CODES, CODES)
def test_a_view_that_was_told_the_changes_knows_as_much(name, form, before, new, asked):
    kind = SUMMARIES[name]
    summary = kind.empty(form).add(before)
    whole = summary.to_bytes()
    later = summary.add(new)
    view = kind.view(form, whole).changed(later.changes(whole))
    assert view.rows == later.rows
    assert view.content == later.to_bytes(whole)
    fresh = kind.view(form, later.to_bytes())
    if kind is not SUMMARIES["dft"] and kind is not SUMMARIES["dftt"]:
        assert np.array_equal(view.expected(asked, fresh), fresh.expected(asked, fresh))


@given(NAMES, FORMS, CODES)
def test_a_summary_comes_back_from_a_checkpoint(name, form, codes):
    kind = SUMMARIES[name]
    summary = kind.empty(form).add(codes)
    assert same(kind.restored(form, summary.saved()), summary)


@given(st.sampled_from([name for name, each in SUMMARIES.items() if each.sure]), FORMS, CODES)
def test_a_sure_summary_misses_no_key(name, form, codes):
    assume(len(codes))
    summary = SUMMARIES[name].empty(form).add(codes)
    assert (summary.view(form, summary.to_bytes()).expected(codes) > 0).all()


@given(FORMS, CODES, CODES)
def test_bloom_never_tells_too_few(form, codes, gone):
    summary = SUMMARIES["bloom"].empty(form).add(codes).add(gone).remove(gone)
    view = summary.view(form, summary.to_bytes())
    counts = Counter(codes.tolist())
    distinct = np.array(list(counts), np.int64)
    wanted = [min(counts[code], 15) for code in distinct.tolist()]
    assert (view.expected(distinct) >= wanted).all()


@given(CODES, CODES)
def test_a_large_digest_is_exact_for_small_counts(codes, asked):
    form = Form(4000)
    summary = SUMMARIES["digest"].empty(form).add(codes)
    counts = Counter(codes.tolist())
    assume(max(counts.values(), default=0) <= 4)
    told = summary.view(form, summary.to_bytes()).expected(np.concatenate([codes, asked]))
    mistaken = sum(
        abs(each - counts[code]) > 0.01
        for each, code in zip(told, np.concatenate([codes, asked]).tolist(), strict=True)
    )
    # By hash, one code in hundreds may be taken for another.
    assert mistaken <= 1 + len(asked) // 20


@given(st.sets(st.integers(0, 500)), st.integers(501, 5000))
def test_sets_come_back(members, limit):
    ascending = np.array(sorted(members), np.int64)
    content = packed(ascending, limit)
    found, rest = unpacked(content + b"more", limit)
    assert found.tolist() == ascending.tolist()
    assert rest == b"more"
    assert len(content) == size_of(len(ascending), limit)


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_patches_turn_one_into_the_other(since, now):
    assert patched(since, patch(since, now)) == now


def test_little_changes_are_told_in_few_bytes():
    codes = np.random.default_rng(1).integers(0, 1 << 40, 20_000)
    for name in ("bloom", "skch", "countsketch"):
        summary = SUMMARIES[name].empty(Form(40_000, 0, 20_000)).add(codes)
        whole = summary.to_bytes()
        share = len(summary.add(codes[:20]).changes(whole)) / len(whole)
        assert share < (0.05 if name != "skch" else 1)


@given(CODES, st.integers(1, 40))
def test_dftt_loses_nothing_exactly_where_its_test_says_so(codes, coefficients):
    form = Form(8 * coefficients, 0, 64)
    summary = DfttSummary.empty(form).add(codes)
    told = summary.view(form, summary.to_bytes()).series
    counts = np.bincount(cells_of(form, codes), minlength=length(form))
    assert summary.lossless(codes) == bool((np.abs(told - counts) < 0.5).all())
    if summary.lossless(codes):
        assert np.array_equal(np.rint(told), counts)
    assert summary.mean_square_error(codes) == pytest.approx(((told - counts) ** 2).mean(), abs=1e-4)


def test_all_coefficients_lose_nothing_and_the_papers_test_is_not_enough():
    codes = np.array([5] * 3 + [9], np.int64)
    whole = Form(8 * 33, 0, 64)
    assert DfttSummary.empty(whole).add(codes).lossless(codes)
    few = DfttSummary.empty(Form(8 * 20, 0, 64)).add(codes)
    assert likely_lossless(few.mean_square_error(codes))
    assert not few.lossless(codes)


@given(st.lists(st.integers(0, 1000), min_size=8, max_size=30), st.lists(st.integers(0, 1000), max_size=30))
def test_a_sliding_transform_is_that_of_the_last_values(window, later):
    slid = SlidingTransform.of(np.array(window, np.float64), 4)
    for value in later:
        slid = slid.slid(value)
    last = np.array((window + later)[len(later) :], np.float64)
    assert np.allclose(slid.coefficients, np.fft.rfft(last)[:4], atol=1e-6)


def test_a_sliding_transform_is_computed_anew_when_errors_could_pass_the_tolerance():
    slid = SlidingTransform.of(np.arange(64.0), 8, tolerance=1e-15)
    counts = []
    for value in range(20):
        slid = slid.slid(float(value))
        counts.append(slid.slides)
    assert 0 < max(counts) < 20


@settings(max_examples=examples(20))
@given(st.sampled_from([name for name in SUMMARIES if name != "base"]), st.integers(0, 100))
def test_windows_that_are_alike_are_similar_and_others_are_not(name, seed):
    random = np.random.default_rng(seed)
    first, second = random.integers(0, 300, 2000), random.integers(1000, 1300, 2000)
    kind, form = SUMMARIES[name], Form(2048, seed, 2048)
    views = [kind.view(form, kind.empty(form).add(each).to_bytes()) for each in (first, first[::-1], second)]
    alike, apart = similarity(views[0], views[1]), similarity(views[0], views[2])
    assert alike == pytest.approx(1, abs=0.01)
    assert apart < 0.6


def test_the_matches_of_windows_are_estimated():
    random = np.random.default_rng(2)
    first, second = random.integers(0, 3000, 20_000), random.integers(1500, 4500, 20_000)
    matches = int(np.bincount(first, minlength=4500) @ np.bincount(second, minlength=4500))
    form = Form(16_384, 0, 20_000)
    for name in ("dft", "skch"):
        kind = SUMMARIES[name]
        mine, other = (kind.view(form, kind.empty(form).add(each).to_bytes()) for each in (first, second))
        told = other.expected(first[:1], mine)[0] * len(first)
        assert told == pytest.approx(matches, rel=0.25), name


@given(CODES, CODES)
def test_counts_are_those_of_a_counter(first, second):
    counted = Counts.of(first).plus(Counts.of(second, -1))
    wanted = Counter(first.tolist())
    wanted.subtract(second.tolist())
    found = dict(zip(counted.codes.tolist(), counted.counts.tolist(), strict=True))
    assert found == {code: many for code, many in wanted.items() if many}


def test_a_change_that_is_within_the_noise_is_not_told():
    codes = np.random.default_rng(3).integers(0, 1 << 40, 20_000)
    summary = DftSummary.empty(Form(8192, 0, 20_000)).add(codes)
    whole = summary.to_bytes()
    assert len(summary.add(codes[:1]).changes(whole)) < len(whole) / 20
