"""A picture of combinations: three frames of each, one below the other, with times and similarities."""

from datetime import UTC, datetime
from pathlib import Path

from check import Check, Combination, Frame
from frames import SIZE
from PIL import Image, ImageDraw, ImageFont

_FOUND = 8
_MISSED = 2
_GAP = 12
_LINE = 16
_STEP = SIZE + 2 * _LINE
_HEAD = _LINE + 4


def write_sheet(path: Path, check: Check) -> None:
    """Draw combinations of several places that were found, and some of one place that were not."""
    found = set(check.alike)
    columns = _of_several_places(check, check.alike, _FOUND)
    missed = [each for each in check.one_place if each not in found]
    columns += _of_several_places(check, missed, _MISSED)
    width = len(columns) * (SIZE + _GAP) + 2 * _GAP
    sheet = Image.new("RGB", (width, _HEAD + 3 * _STEP - _LINE + 4), "white")
    draw = ImageDraw.Draw(sheet)
    draw.text((_GAP, 3), "found: the same place", "black", _font())
    for number, frames in enumerate(columns):
        left = _GAP + number * (SIZE + _GAP) + (_GAP if number >= _FOUND else 0)
        if number == _FOUND:
            draw.text((left, 3), "missed", "black", _font())
        _draw_column(sheet, draw, left, frames)
    sheet.save(path, quality=80, method=6)


def _of_several_places(check: Check, combinations: list[Combination], count: int) -> list[list[Frame]]:
    by_place = {frames[0].place: frames for frames in map(check.frames, reversed(combinations))}
    return sorted(by_place.values(), key=lambda frames: frames[0].time)[:count]


def _draw_column(sheet: Image.Image, draw: ImageDraw.ImageDraw, left: int, frames: list[Frame]) -> None:
    for row, frame in enumerate(frames):
        top = _HEAD + row * _STEP
        sheet.paste(Image.fromarray(frame.pixels), (left, top))
        moment = datetime.fromtimestamp(frame.time / 1e6, UTC)
        draw.text((left, top + SIZE), f"{moment:%H:%M:%S}.{moment.microsecond // 100_000}", "gray", _font())
        if row < 2:
            alike = f"{frame.similarity(frames[row + 1]):.3f}"
            draw.text((left + SIZE // 2, top + SIZE + _LINE - 2), alike, "black", _font(), anchor="ma")


def _font() -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(11)
