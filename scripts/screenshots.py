"""Take the pictures of docs/images: EXPLAIN at a terminal and as a page, and the live page of a query.

``make screenshots`` runs it: a query over three live streams runs for a minute, and Chromium
without a screen looks at it.
"""

import base64
import io
import re
import tempfile
import time
from pathlib import Path

from PIL import Image
from rich.console import Console
from rich.text import Text

import wjoin
from tests.browser import chromium
from wjoin.shell.explained import explained
from wjoin.shell.paint import Paint

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
COLUMNS = 100
WIDTH, HEIGHT = 1080, 900
RUNS_SECONDS = 60
STREAMS = {"camera1": 200, "camera2": 200, "camera3": 100}
QUERY = """
SELECT A.obj_id, A.ts AS at_1, B.ts AS at_2, C.ts AS at_3
FROM camera1 AS A, camera2 AS B, camera3 AS C
WINDOW (A, B) = 5 SECONDS AND WINDOW (B, C) = 3 SECONDS
WHERE A.obj_id = B.obj_id AND B.obj_id = C.obj_id
"""
# Its own leads to a font on the network.
_SVG = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font: {char_height}px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }}
{styles}
</style>
<defs>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})">{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g></g>
</svg>
"""


def terminal(text: str) -> str:
    """Return what a terminal shows of a text with colours, as SVG."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(Text.from_ansi(text), soft_wrap=True)
    svg = console.export_svg(title="EXPLAIN", code_format=_SVG, unique_id="explain")
    # Each line of text would be clipped by a shape of its own.
    svg = re.sub(r' clip-path="[^"]*"', "", re.sub(r"<defs>.*?</defs>", "", svg, flags=re.DOTALL))
    return re.sub(r"[ \t]+$", "", svg, flags=re.MULTILINE)


def photograph(address: str, target: Path, *, wait: float = 0.0, until: str = "") -> None:
    """Write a picture of a page, down to where the element of a CSS selector begins where one is given."""
    with tempfile.TemporaryDirectory(prefix="wjoin-chromium-") as profile:
        browser = chromium(Path(profile))
        try:
            browser.set_window_size(WIDTH, HEIGHT)
            browser.get(address)
            time.sleep(wait)
            height = browser.execute_script(
                "const last = arguments[0] && document.querySelector(arguments[0]);"
                "return Math.ceil(last ? last.getBoundingClientRect().top + scrollY - 8"
                " : document.documentElement.scrollHeight)",
                until,
            )
            clip = {"x": 0, "y": 0, "width": WIDTH, "height": height, "scale": 1}
            taken = browser.execute_cdp_cmd(
                "Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip}
            )
        finally:
            browser.quit()
    Image.open(io.BytesIO(base64.b64decode(taken["data"]))).save(target, "WEBP", quality=70, method=6)


def main() -> None:
    """Take all pictures."""
    IMAGES.mkdir(exist_ok=True)
    session = wjoin.connect(**{"spark.sql.shuffle.partitions": "2"})
    for name, rate in STREAMS.items():
        rows = session.readStream.format("rate").option("rowsPerSecond", rate).load()
        rows = rows.selectExpr("value % 500 AS obj_id", "timestamp AS ts", "value")
        session.stream(name, rows, event_time="ts", delay="2 seconds")
        session.sql(f"ALTER STREAM {name} SET STATISTICS (rate = {rate}, distinct.obj_id = 500)")
    plan = session.explain(QUERY)
    (IMAGES / "explain.svg").write_text(terminal("\n".join(explained(plan, COLUMNS, Paint(True)))), "utf-8")
    with tempfile.TemporaryDirectory(prefix="wjoin-screenshots-", ignore_cleanup_errors=True) as folder:
        page = Path(folder, "explain.html")
        page.write_text(plan.rendered("html"), "utf-8")
        photograph(page.as_uri(), IMAGES / "explain.webp", until="h3:last-of-type")
        session.sql(f"CREATE SINK tracked USING parquet OPTIONS (path '{folder}/tracked')")
        session.run_script(f"INSERT INTO tracked {QUERY}", once=False, checkpoint=f"{folder}/checkpoints")
        web = session.serve_web(port=0)
        time.sleep(RUNS_SECONDS)
        photograph(web.url, IMAGES / "live.webp", wait=8, until="#streams-part")
        web.close()
        for query in session.streams.active:
            query.stop()
    for path in sorted(IMAGES.iterdir()):
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
