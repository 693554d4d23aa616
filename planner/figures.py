"""Numbers, times and sizes as people read them."""

from wjoin.grammar.plurals import counted

_WORDS = ((1e9, "billion"), (1e6, "million"), (1e3, "thousand"))
_PLAIN = 10_000
_MOST, _LEAST = 1e12, 1e-6
_HOUR = 3600.0
_LONG = ((2 * 365 * 24, "years", 365 * 24), (2 * 24, "days", 24), (2, "h", 1))
"""From how many hours on a time has which unit, and the hours of that."""
_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))
_SIZES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def figure(value: float) -> str:
    """Return a number with about three digits, a large one in words.

    >>> figure(0.012345), figure(12), figure(1234.4), figure(55_960)
    ('0.0123', '12', '1,234', '56 thousand')
    >>> figure(3.9e6), figure(999_999), figure(3.89e16), figure(1e-9)
    ('3.9 million', '1 million', 'more than 1,000 billion', 'less than 0.000001')
    """
    size = abs(value)
    sign = "-" if value < 0 else ""
    if size == 0:
        return "0"
    if size < _LEAST:
        return f"{sign}less than 0.000001" if not sign else "0"
    if size > _MOST:
        return f"{'less' if sign else 'more'} than {sign}1,000 billion"
    rounded = float(f"{size:.3g}")
    if size < _PLAIN:
        return f"{sign}{_digits(size) if size < 100 else f'{size:,.0f}'}"
    power, word = next(each for each in _WORDS if rounded >= each[0])
    return f"{sign}{_digits(rounded / power)} {word}"


def seconds(value: float) -> str:
    """Return a time in the unit that suits it.

    >>> seconds(0.0123), seconds(61.5), seconds(4e-7), seconds(0)
    ('12.3 ms', '61.5 s', '0.4 us', '0 s')
    >>> seconds(5400), seconds(148_000), seconds(4e6), seconds(1e9)
    ('5,400 s', '41.1 h', '46.3 days', '31.7 years')
    """
    if value == 0:
        return "0 s"
    if abs(value) < 1e-8:
        return "0 us"
    for least, unit, hours in _LONG:
        if abs(value) >= least * _HOUR:
            return f"{figure(value / hours / _HOUR)} {unit}"
    size, unit = next((each for each in _TIMES if abs(value) >= each[0]), _TIMES[-1])
    return f"{figure(value / size)} {unit}"


def size(value: float) -> str:
    """Return a number of bytes in the greatest unit of which there is one.

    >>> size(12), size(5_100_000), size(3e17)
    ('12 bytes', '5.1 MB', '300 thousand TB')
    """
    for one, unit in _SIZES:
        if value >= one:
            return f"{figure(value / one)} {unit}"
    return counted(figure(value), "byte")


def _digits(value: float) -> str:
    """Return three significant digits, never as a power of ten."""
    text = f"{float(f'{value:.3g}'):.9f}"
    return text.rstrip("0").rstrip(".")
