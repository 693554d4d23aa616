"""Blocks: bytes by their rows, shares of headers, and false shedding (S2J, sections 3.3.2 and 4.3)."""

import numpy as np
from report import Curve, Panel, Verdict, number
from s2j_blocks import in_blocks, rows_of, sent
from s2j_chain import Loads, Wave, by_utilization, chain, routed
from s2j_parts import Judged, Part, panel, percent, table, told
from s2j_tasks import Load, alone, own_windows

from wjoin.planner.cost.shed_share import Thresholds

WIDE = 7
"""Columns of a usual row: event time, key and five others."""


def blocks(*, quick: bool) -> Part:
    """Bytes by the rows of a block: lemma 1 and theorem 1."""
    sizes = (1, 20, 500) if quick else (1, 5, 20, 50, 100, 200, 500, 1000)
    rows = 2000 if quick else 20_000
    lines, curves, off, enough = {}, [], [], {}
    for columns in (2, WIDE):
        data = rows_of(columns, rows)
        found = [in_blocks(data, size) for size in sizes]
        whole = found[-1]
        lines[f"{columns} columns: share of headers"] = [percent(each.headers) for each in found]
        lines[f"{columns} columns: more than the rows"] = [
            percent(each.size / each.values - 1) for each in found
        ]
        packed = in_blocks(data, None).packed
        lines[f"{columns} columns: more as LZ4"] = [percent(each.packed / packed - 1) for each in found]
        curves.append(
            Curve(f"{columns} columns", np.array(sizes, float), np.array([e.size / e.values for e in found]))
        )
        # Lemma 1 with the header of the smallest block must tell all others.
        header = (found[0].size - found[0].values) / found[0].blocks
        expected = [each.values + each.blocks * header for each in found]
        off += [abs(each.size / wanted - 1) for each, wanted in zip(found, expected, strict=True)]
        width = whole.values / whole.rows
        enough[columns] = (header, width, 20 * header / width)
        lines[f"{columns} columns: header, bytes; rows for 5 %"] = [
            f"{header:.0f}; {enough[columns][2]:.0f}",
            *[""] * (len(sizes) - 1),
        ]
    told("blocks")
    at_20 = [in_blocks(rows_of(columns, rows), 20) for columns in (2, WIDE)]
    excess = [each.size / each.values - 1 for each in at_20]
    curves.append(Curve("theorem 1", np.array(sizes, float), 1 + 1 / np.array(sizes)))
    plot = Panel("bytes, as a multiple of the rows'", "rows of a block", curves, True, "times b_min", True)
    return Part(
        [table("blocks", "Bytes by the rows of a block", "rows of a block", sizes, lines)],
        [plot],
        [
            Judged(
                "lemma 1",
                "a header is as long in every block, so bytes are rows and headers",
                Verdict(max(off) < 0.02, f"off by {100 * max(off):.1f} % at most"),
            ),
            Judged(
                "theorem 1",
                "with 20 rows a block the bandwidth is 5 % above its lower bound",
                Verdict(
                    max(excess) <= 0.05,
                    f"{percent(min(excess))} to {percent(max(excess))} above it: a header is as long as "
                    f"{enough[WIDE][0] / enough[WIDE][1]:.0f} to {enough[2][0] / enough[2][1]:.0f} rows, so "
                    f"{enough[WIDE][2]:.0f} to {enough[2][2]:.0f} rows are needed",
                ),
            ),
        ],
    )


def batches(*, quick: bool) -> Part:
    """Share of headers by the size of a micro-batch, and by the columns of a row where a block is full."""
    sizes = (100, 10_000) if quick else (100, 1000, 3000, 10_000, 100_000, 1_000_000)
    plan = alone(own_windows(1)[0])
    lines = {}
    for workers in (1, 2, 8) if quick else (1, 2, 8, 32):
        found = []
        for size in sizes:
            load = Load(rate=size, keys=10 * size)
            found.append(sent(plan, load.blocks(plan, 0), workers, workers))
        lines[f"{workers} × {workers}: share of headers"] = [percent(each.headers) for each in found]
        lines[f"{workers} × {workers}: headers, kB"] = [
            number((each.size - each.values) / 1e3) for each in found
        ]
    columns = (7, 60) if quick else (2, 7, 15, 30, 60, 100)
    full = [in_blocks(rows_of(each, 20_000), None) for each in columns]
    of_columns = {
        "rows of a block": [f"{each.rows_of_block:,.0f}" for each in full],
        "share of headers": [f"{100 * each.headers:.1f} %" for each in full],
    }
    told("micro-batches")
    claim = Judged(
        "(wjoin's)",
        "headers are at most 5 % of full blocks, however many columns a row has",
        Verdict(
            max(each.headers for each in full) <= 0.05,
            f"{percent(max(each.headers for each in full))} at most",
        ),
    )
    return Part(
        [
            table("batches", "Share of headers", "tasks × workers; rows of each stream", sizes, lines),
            table("columns", "Full blocks", "columns", columns, of_columns),
        ],
        [],
        [claim],
    )


def false_shedding(*, quick: bool) -> Part:
    """Rows that are shed although all workers together have room."""
    sizes = (20, 370) if quick else (1, 7, 20, 70, 170, 370, 700)
    thresholds = Thresholds()
    waves = {f"amplitude {each}": Wave(amplitude=each) for each in ((0.1,) if quick else (0.1, 0.2))}
    if not quick:
        waves["amplitude 0.1, period 30 s"] = Wave(period=30)
    lines: dict[str, list[str]] = {}
    panels, sheds, apart = [], {}, []
    for name, wave in waves.items():
        ways: dict[str, list[Loads]] = {
            "chain": [chain(wave, lambda _, size=size: size) for size in sizes],
            "chain, ς by τ": [chain(wave, by_utilization(size, thresholds)) for size in sizes],
            "slices": [routed(wave, size) for size in sizes],
            "hash": [routed(wave, None)] * len(sizes),
        }
        for way, loads in ways.items():
            sheds[name, way] = [each.shed(thresholds)[1] for each in loads]
            lines[f"{name}: {way}, falsely shed"] = [f"{100 * each:.2f} %" for each in sheds[name, way]]
        lines[f"{name}: chain, fullest of an even share"] = [f"{each.busiest:.2f}" for each in ways["chain"]]
        lines[f"{name}: slices, fullest of an even share"] = [
            f"{each.busiest:.2f}" for each in ways["slices"]
        ]
        apart += [each.apart / size for size, each in zip(sizes, ways["chain"], strict=True) if size > 1]
        curves = {way: [100 * each for each in sheds[name, way]] for way in ways}
        panels.append(panel(name, "rows of a block, or of a slice", sizes, curves, "falsely shed, %"))
        told(name)
    first = next(iter(waves))
    fixed, chosen = (sheds[first, way] for way in ("chain", "chain, ς by τ"))
    return Part(
        [table("false", "Rows shed falsely", "rows of a block", sizes, lines)],
        panels,
        [
            Judged(
                "§4.3",
                "smaller blocks shed less falsely",
                Verdict(
                    fixed[0] <= fixed[-1],
                    f"{100 * fixed[0]:.2f} % with {sizes[0]}, {100 * fixed[-1]:.2f} % with {sizes[-1]} rows",
                ),
            ),
            Judged(
                "claim 1",
                "blocks whose size goes by τ shed less falsely than such of one size",
                Verdict(
                    sum(chosen) < sum(fixed),
                    f"{100 * chosen[-1]:.2f} % in place of {100 * fixed[-1]:.2f} % with {sizes[-1]} rows",
                ),
            ),
            Judged(
                "§3.3.2",
                "no two workers of the chain are more than a block apart",
                Verdict(max(apart) <= 1, f"up to {max(apart):.1f} blocks apart"),
            ),
        ],
    )
