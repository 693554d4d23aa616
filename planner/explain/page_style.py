"""The style of the page: every rule is inside one class, so that a notebook keeps its own."""

ROOT = "wjoin-plan"
"""The class around everything that the page shows."""

_LIGHT = """
  color-scheme: light;
  --back: #ffffff; --panel: #f6f8fa; --line: #d0d7de; --text: #1f2733; --soft: #566171;
  --accent: #0a5fb4; --mark: #dcebfb; --warm: #a34407; --warning: #fff4e0; --flow: #8592a3;
  --given: #1f2733; --derived: #6b7788;
"""

_DARK = """
  color-scheme: dark;
  --back: #14181f; --panel: #1c222b; --line: #39424f; --text: #e6eaf0; --soft: #a3adba;
  --accent: #6cb2ff; --mark: #17324f; --warm: #f2a35e; --warning: #3a2c12; --flow: #7d8a9b;
  --given: #e6eaf0; --derived: #93a0b1;
"""

_RULES = """
& { background: var(--back); color: var(--text); font: 14px/1.5 system-ui, "Segoe UI", "Helvetica Neue",
  Arial, sans-serif; padding: 20px 24px; max-width: 1180px; box-sizing: border-box; text-align: left; }
& * { box-sizing: border-box; }
& h1 { font-size: 22px; margin: 0 0 12px; color: inherit; }
& h2 { font-size: 18px; margin: 28px 0 8px; color: inherit; }
& h3 { font-size: 15px; margin: 24px 0 8px; padding: 0; color: inherit; font-weight: 600; }
& p { margin: 6px 0; color: inherit; }
& .join + .join { border-top: 1px solid var(--line); margin-top: 32px; }
& .lead { max-width: 76ch; overflow-wrap: anywhere; }
& .note, & .legend, & summary { color: var(--soft); font-size: 13px; }
& summary { cursor: pointer; padding: 4px 0; }
& .legend .key { display: inline-block; margin-right: 16px; }
& .legend svg { vertical-align: -1px; }
& .warning { background: var(--warning); border-left: 4px solid var(--warm); padding: 6px 12px;
  border-radius: 4px; max-width: 80ch; overflow-wrap: anywhere; }
& .tiles { display: flex; flex-wrap: wrap; gap: 10px; margin: 14px 0 4px; }
& .tile { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: 8px 14px;
  min-width: 130px; }
& .tile b { display: block; font-size: 19px; line-height: 1.3; font-weight: 650; }
& .tile.best b { color: var(--accent); }
& .tile span { color: var(--soft); font-size: 12px; }
& .alternatives { display: flex; flex-wrap: wrap; gap: 16px; align-items: flex-start; }
& figure { margin: 0; padding: 10px; border: 1px solid var(--line); border-radius: 8px; max-width: 100%;
  width: fit-content;
  overflow-x: auto; background: var(--back); }
& figcaption { color: var(--soft); font-size: 13px; margin-bottom: 4px; }
& .scroll { overflow-x: auto; max-width: 100%; }
& svg.picture { display: inline-block; max-width: none; height: auto; overflow: visible;
  font: 12px system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif; }
& figure svg.picture { display: block; }
& svg text { fill: var(--text); stroke: none; }
& table { border-collapse: collapse; border: 0; margin: 6px 0; font-size: 13px; color: inherit;
  background: transparent; }
& table th, & table td { text-align: right; padding: 5px 12px; border: 0;
  border-bottom: 1px solid var(--line); vertical-align: top; background: transparent;
  color: inherit; white-space: nowrap; }
& table th { color: var(--soft); font-weight: 600; }
& table th:first-child, & table td:first-child, & table td.words { text-align: left; }
& table td.words { white-space: normal; overflow-wrap: anywhere; }
& .fact + .fact { margin-top: 2px; }
& span.source { display: inline-block; font-size: 11px; line-height: 1.5; padding: 0 6px; margin-left: 6px;
  border-radius: 8px; border: 1px solid var(--line); color: var(--soft); }
& span.given, & span.analyzed, & span.measured { border-color: var(--accent); color: var(--accent); }
& span.default { border-style: dashed; }

& .edge line { stroke: var(--given); stroke-width: 1.8; }
& .edge polygon { fill: var(--given); }
& .edge.derived line { stroke: var(--derived); stroke-width: 1.3; stroke-dasharray: 6 4; }
& .edge.derived polygon { fill: var(--derived); }
& .edge.tightened line { stroke: var(--warm); stroke-width: 2.6; }
& .edge.tightened polygon { fill: var(--warm); }
& .edge.partly-given line { stroke-dasharray: 14 3 3 3; }
& .edge.free line { stroke: var(--derived); stroke-width: 1; stroke-dasharray: 1.5 4; }
& .label rect { fill: var(--back); }
& .label.derived text, & .label.free text { fill: var(--soft); }
& .label.tightened .interval { fill: var(--warm); font-weight: 600; }
& .label .was { text-decoration: line-through; fill: var(--soft); }
& .node rect { fill: var(--panel); stroke: var(--given); stroke-width: 1.5; }
& .node.static rect { stroke-dasharray: 4 3; }
& .name { font-weight: 650; }

& .plan { display: flex; }
& .branch { display: flex; align-items: center; }
& .feeds > .branch { position: relative; justify-content: flex-end; padding: 8px 46px 8px 0; }
& .feeds > .branch::before { content: ""; position: absolute; right: 23px; top: 0; bottom: 0;
  border-right: 1.6px solid var(--flow); }
& .feeds > .branch:first-child::before { top: 50%; }
& .feeds > .branch:last-child::before { bottom: 50%; }
& .feeds > .branch::after, & .feeds + .box::before { content: ""; position: absolute; width: 23px; top: 50%;
  border-top: 1.6px solid var(--flow); }
& .feeds > .branch::after { right: 23px; }
& .feeds + .box::before { right: 100%; }
& .feeds + .box::after { content: ""; position: absolute; right: 100%; top: calc(50% - 4px);
  border: solid transparent; border-width: 5px 0 5px 9px; border-left-color: var(--flow); }
& .box { position: relative; flex: none; width: 236px; padding: 10px 12px; border-radius: 8px;
  border: 1.2px solid var(--line); background: var(--panel); font-size: 12px; line-height: 17px;
  overflow-wrap: anywhere; }
& .box.stage { background: var(--mark); border: 1.6px solid var(--accent); }
& .box.result { border: 2.4px solid var(--accent); }
& .box.static { border-style: dashed; }
& .box .name { font-size: 13px; }
& .box .meaning { color: var(--soft); }
& .box.stage .meaning { padding-left: 12px; }
& .box .kept { color: var(--accent); }
& .box .live { color: var(--warm); font-weight: 600; font-variant-numeric: tabular-nums; white-space: nowrap;
  overflow: hidden; text-overflow: ellipsis; }
& .box .port, & .box .choice { font-weight: 600; }

& .slice { display: inline-block; min-width: 46px; padding: 2px 6px; text-align: center; font-size: 12px;
  background: var(--panel); border: 1.2px solid var(--line); }
& .slice.own { background: var(--mark); border: 1.6px solid var(--accent); }
& .slices table td, & .slices table th { text-align: center; padding: 4px 14px; border: 0; }
& .sign { display: inline-block; width: 14px; height: 14px; border-radius: 50%; vertical-align: -2px;
  border: 1.6px solid var(--flow); }
& .sign.keeps { background: var(--accent); border-color: var(--accent); }
& .sign.copies { background: var(--mark); border: 2px solid var(--accent); }

& .costs { overflow-x: auto; max-width: 966px; }
& .candidate { display: flex; flex-wrap: wrap; padding: 3px 6px; font-size: 12px; align-items: center; }
& .candidate .name { flex: 1 0 100%; font-size: 13px; font-weight: 400; }
& .candidate.chosen { background: var(--mark); border-radius: 4px; }
& .costs .grid { stroke: var(--line); stroke-width: 1; }
& .costs .tick { fill: var(--soft); font-size: 11px; }
& .costs > svg { margin-left: 6px; }
& .candidate .bar { line-height: 0; width: 360px; }
& .candidate .cost { width: 74px; text-align: right; padding-right: 16px; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
& .candidate .reason { flex: 1 0 200px; color: var(--soft); }
& .chosen .name, & .chosen .cost, & .chosen .reason { font-weight: 650; color: var(--accent); }
& .costs .chosen-cost { stroke: var(--accent); stroke-width: 1.4; stroke-dasharray: 5 3; }
& .costs .break polygon { fill: var(--back); }
& .costs .break line { stroke: var(--text); stroke-width: 1.4; }
& .term { stroke: var(--back); stroke-width: 0.6; }
& .term-0 { fill: #0072b2; }
& .term-1 { fill: #56b4e9; }
& .term-2 { fill: #d55e00; }
& .term-3 { fill: #e69f00; }
& .term-4 { fill: #cc79a7; }
& .term-5 { fill: #009e73; }
& .term-6 { fill: #97a1ae; }
& .term-7 { fill: #8c6d31; }
& .term-8 { fill: #74a34a; }
& .term-other { fill: #7a5195; }
"""

STYLE = "\n".join(
    [
        f".{ROOT} {{{_LIGHT}}}",
        f"@media (prefers-color-scheme: dark) {{ .{ROOT} {{{_DARK}}} }}",
        _RULES.replace("& ", f".{ROOT} "),
    ]
)
"""The rules, for light and dark screens."""

AROUND = """
html { color-scheme: light dark; }
body { margin: 0; background: #ffffff; }
@media (prefers-color-scheme: dark) { body { background: #14181f; } }
"""
"""What the page itself needs beside them."""
