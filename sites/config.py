"""The file that says what a site serves: its address, limits and streams, checked entry by entry."""

import difflib
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.shown import shown
from wjoin.sites.access import Listen, parse_listen
from wjoin.sites.columns import parse_columns
from wjoin.sites.limits import MOST_NAME, Limits
from wjoin.sites.records import EPOCHS
from wjoin.sites.retention import Retention
from wjoin.sites.source_folder import FORMATS
from wjoin.sites.units import microseconds, size

STANDARD_INPUT = "-"
KAFKA = "kafka://"


@dataclass(frozen=True)
class StreamConfig:
    """One stream: where its rows come from, which columns they have, and what is kept of them."""

    name: str
    source: str
    format: str
    schema: pa.Schema | None
    time: str
    keys: tuple[str, ...]
    retention: Retention
    epoch: str
    header: bool
    delimiter: str
    poll: float
    start: str
    options: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True)
class SiteConfig:
    """A site: where it listens, what is asked of a caller, where it keeps its data, and its streams."""

    listen: Listen
    data: Path
    token_file: Path | None
    certificate: Path | None
    key: Path | None
    memory: int
    segment_bytes: int
    sync: bool
    metrics: Listen | None
    metrics_token_file: Path | None
    limits: Limits
    streams: tuple[StreamConfig, ...]


_SITE = [name for name in SiteConfig.__dataclass_fields__ if name != "streams"]
_STREAM = (
    *("source", "format", "schema", "time", "key", "window", "window_rows", "max_bytes", "consumer_lease"),
    *("epoch", "header", "delimiter", "poll", "start", "options"),
)


def read_config(path: Path) -> SiteConfig:
    """Return the configuration of a file. Raises WJoinError WJ608, WJ901, WJ902 or WJ904."""
    try:
        plain = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise WJoinError("WJ608", f"{path.resolve()} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeError) as error:
        raise WJoinError("WJ901", f"{path.name} is not valid TOML: {error}") from error
    top = _Table(plain, "", ("site", "streams"))
    site = _Table(top.table("site"), "site", _SITE)
    streams = top.table("streams")
    if not streams:
        raise WJoinError("WJ901", "there is no stream", help="add a table [streams.NAME]")
    found = tuple(_stream(name, value, path.parent) for name, value in streams.items())
    if sum(each.source == STANDARD_INPUT for each in found) > 1:
        raise WJoinError("WJ901", "two streams read standard input", help="give one of them another source")
    listen = _listen(site, "listen", "127.0.0.1:7777")
    if listen is None:
        raise AssertionError("it has a default")
    memory = site.size("memory", "1 GB")
    if memory < 64_000_000:
        raise site.wrong("memory", "is less than 64 MB")
    config = SiteConfig(
        listen=listen,
        data=path.parent / site.text("data", "site-data"),
        token_file=_file(site, "token_file", path.parent),
        certificate=_file(site, "certificate", path.parent),
        key=_file(site, "key", path.parent),
        memory=memory,
        segment_bytes=min(site.size("segment_bytes", "128 MB"), memory // (4 * len(found))),
        sync=site.boolean("sync", False),
        metrics=_listen(site, "metrics", None),
        metrics_token_file=_file(site, "metrics_token_file", path.parent),
        limits=_limits(site).within(memory),
        streams=found,
    )
    _check_access(config)
    return config


def _check_access(config: SiteConfig) -> None:
    """Refuse an address that others reach without a token and TLS. Raises WJoinError WJ902."""
    if (config.certificate is None) != (config.key is None):
        raise WJoinError("WJ902", "certificate and key must be given together")
    missing = [
        name
        for name, value in (("token_file", config.token_file), ("certificate", config.certificate))
        if value is None
    ]
    if missing and not config.listen.loopback:
        what = " and ".join(missing)
        raise WJoinError(
            "WJ902", f"{config.listen} can be reached from other machines, and [site] has no {what}"
        )
    if config.metrics is None or config.metrics.loopback:
        return
    where = f"metrics at {config.metrics} can be reached from other machines"
    if config.token_file is None and config.metrics_token_file is None:
        raise WJoinError("WJ902", f"{where} without a token")
    if config.certificate is None and config.metrics_token_file is None:
        help = "give [site] a certificate and a key, or a separate metrics_token_file"
        raise WJoinError("WJ902", f"{where}, and the site's own token would be sent unencrypted", help=help)


def _listen(site: "_Table", name: str, default: str | None) -> Listen | None:
    text = site.optional(name) or default
    if text is None:
        return None
    found = parse_listen(text)
    if found is None:
        raise site.wrong(name, f"is {text!r}, not HOST:PORT")
    return found


def _file(site: "_Table", name: str, folder: Path) -> Path | None:
    text = site.optional(name)
    return None if text is None else folder / text


def _limits(site: "_Table") -> Limits:
    names = [*Limits.__dataclass_fields__]
    table = _Table(site.table("limits"), "site.limits", names)
    given: dict[str, int] = {}
    for name in table.names():
        given[name] = table.size(name, "") if name.endswith("bytes") else table.number(name, 1)
    return Limits(**given)


def _stream(name: str, plain: Any, folder: Path) -> StreamConfig:
    where = f"streams.{name}"
    if not name.isprintable() or "/" in name or name.startswith(".") or len(name.encode()) > MOST_NAME:
        raise WJoinError("WJ901", f"{shown(where)} cannot name a stream and its folder")
    if not isinstance(plain, dict):
        raise WJoinError("WJ901", f"{where} is not a table", help=f"write [{where}]")
    table = _Table(plain, where, _STREAM)
    source = table.text("source")
    lines = source == STANDARD_INPUT or source.startswith(KAFKA)
    format = table.one_of("format", ("json",) if lines else FORMATS, "json" if lines else "parquet")
    declared = table.optional("schema")
    if declared is None and format != "parquet":
        raise table.wrong("schema", f"is missing, and {format} has no column types")
    schema = None if declared is None else parse_columns(declared, f"{where}.schema")
    time = table.text("time")
    keys = table.texts("key")
    if schema is not None:
        check_columns(schema, time, keys, where)
    return StreamConfig(
        name=name,
        source=source if lines else str(folder / source),
        format=format,
        schema=schema,
        time=time,
        keys=keys,
        retention=_retention(table),
        epoch=table.one_of("epoch", EPOCHS, "seconds"),
        header=table.boolean("header", True),
        delimiter=table.text("delimiter", ","),
        poll=table.time("poll", "1 second") / 1e6,
        start=table.one_of("start", ("earliest", "latest"), "earliest"),
        options={key: str(value) for key, value in table.table("options").items()},
    )


def check_columns(schema: pa.Schema, time: str, keys: Collection[str], where: str) -> None:
    """Refuse an event time or a key that is no column of a stream, or no time. Raises WJoinError WJ901."""
    for entry, name in (("time", time), *(("key", each) for each in keys)):
        if name not in schema.names:
            help = _nearest(name, schema.names) or f"the columns are {', '.join(schema.names)}"
            raise WJoinError("WJ901", f"{where}.{entry}: there is no column {name}", help=help)
    kind = schema.field(time).type
    if not (pa.types.is_timestamp(kind) or pa.types.is_signed_integer(kind)):
        raise WJoinError("WJ901", f"{where}.time: {time} is {kind}, not a timestamp or an integer")


def _retention(table: "_Table") -> Retention:
    window: int | None = None
    rows = table.number("window_rows", 1) if "window_rows" in table.names() else None
    if "window" in table.names():
        given = table.plain["window"]
        whole = isinstance(given, int) and not isinstance(given, bool) and given > 0
        window = given if whole else table.time("window", "")
    if (window is None) == (rows is None):
        raise table.wrong("window", "or window_rows is needed, but not both")
    most = table.size("max_bytes", "") if "max_bytes" in table.names() else None
    return Retention(window, rows, most, table.time("consumer_lease", "1 day") / 1e6)


@dataclass(frozen=True)
class _Table:
    """A table of the file with its name; an entry with another name than the known ones is refused."""

    plain: Mapping[str, Any]
    name: str
    known: Collection[str] = field(default=())

    def __post_init__(self) -> None:
        for entry in self.plain:
            if entry not in self.known:
                help = _nearest(entry, self.known) or f"the entries are {', '.join(self.known)}"
                raise WJoinError("WJ901", f"{self._full(entry)} is unknown", help=help)

    def _full(self, entry: str) -> str:
        return f"{self.name}.{entry}" if self.name else entry

    def names(self) -> list[str]:
        """Return the entries that are given."""
        return [*self.plain]

    def wrong(self, entry: str, why: str) -> WJoinError:
        """Return the error of an entry."""
        return WJoinError("WJ901", f"{self._full(entry)} {why}")

    def table(self, entry: str) -> Mapping[str, Any]:
        """Return a table inside, empty where it is not given."""
        found = self.plain.get(entry, {})
        if not isinstance(found, dict):
            raise self.wrong(entry, "is not a table")
        return found

    def optional(self, entry: str) -> str | None:
        """Return a text, None where it is not given."""
        found = self.plain.get(entry)
        if found is not None and (not isinstance(found, str) or not found):
            raise self.wrong(entry, f"is {found!r:.60}, not a string")
        return found

    def text(self, entry: str, default: str | None = None) -> str:
        """Return a text."""
        found = self.optional(entry)
        if found is None and default is None:
            raise self.wrong(entry, "is missing")
        return found or default or ""

    def texts(self, entry: str) -> tuple[str, ...]:
        """Return a list of texts; one text is a list of one."""
        found = self.plain.get(entry, [])
        listed = [found] if isinstance(found, str) else found
        if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
            raise self.wrong(entry, f"is {found!r:.60}, not a list of names")
        return tuple(listed)

    def one_of(self, entry: str, choices: Collection[str], default: str) -> str:
        """Return one of some words."""
        found = self.text(entry, default)
        if found not in choices:
            raise self.wrong(entry, f"is {found!r:.60}, not one of {', '.join(choices)}")
        return found

    def boolean(self, entry: str, default: bool) -> bool:
        """Return true or false."""
        found = self.plain.get(entry, default)
        if not isinstance(found, bool):
            raise self.wrong(entry, f"is {found!r:.60}, not true or false")
        return found

    def number(self, entry: str, least: int) -> int:
        """Return a whole number."""
        found = self.plain.get(entry)
        if not isinstance(found, int) or isinstance(found, bool) or found < least:
            raise self.wrong(entry, f"is {found!r:.60}, not a whole number of at least {least}")
        return found

    def size(self, entry: str, default: str) -> int:
        """Return a size in bytes."""
        found = self.plain.get(entry, default)
        read = size(found) if isinstance(found, str) else found
        if not isinstance(read, int) or isinstance(read, bool) or read <= 0:
            raise self.wrong(entry, f"is {found!r:.60}, not a size such as '64 MB'")
        return read

    def time(self, entry: str, default: str) -> int:
        """Return a time in microseconds."""
        found = self.plain.get(entry, default)
        read = microseconds(found) if isinstance(found, str) else None
        if not read:
            raise self.wrong(entry, f"is {found!r:.60}, not a time such as '10 minutes'")
        return read


def _nearest(name: str, known: Collection[str]) -> str | None:
    near = difflib.get_close_matches(name, [*known], n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else None
