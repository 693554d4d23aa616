"""The file that says what a site serves: its address, limits and streams, checked entry by entry."""

import difflib
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import pyarrow as pa

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.shown import shown
from wjoin.sites.access import Listen, parse_listen
from wjoin.sites.columns import parse_columns
from wjoin.sites.limits import MOST_NAME, Limits
from wjoin.sites.records import EPOCHS
from wjoin.sites.retention import StoreRetention
from wjoin.sites.source_folder import FORMATS
from wjoin.sites.sources import KAFKA, STANDARD_INPUT, StreamConfig
from wjoin.sites.units import microseconds, size

T = TypeVar("T")


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
    memory = site.get("memory", _SIZE, "1 GB")
    if memory < 64_000_000:
        raise site.wrong("memory", "is less than 64 MB")
    config = SiteConfig(
        listen=site.get("listen", _LISTEN, "127.0.0.1:7777"),
        data=path.parent / site.get("data", _TEXT, "site-data"),
        token_file=_file(site, "token_file", path.parent),
        certificate=_file(site, "certificate", path.parent),
        key=_file(site, "key", path.parent),
        memory=memory,
        segment_bytes=min(site.get("segment_bytes", _SIZE, "128 MB"), memory // (4 * len(found))),
        sync=site.get("sync", _BOOLEAN, False),
        metrics=site.optional("metrics", _LISTEN),
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


def _file(site: "_Table", name: str, folder: Path) -> Path | None:
    text = site.optional(name, _TEXT)
    return None if text is None else folder / text


def _limits(site: "_Table") -> Limits:
    names = [*Limits.__dataclass_fields__]
    table = _Table(site.table("limits"), "site.limits", names)
    kinds = {name: _SIZE if name.endswith("bytes") else _whole(1) for name in table.plain}
    return Limits(**{name: table.get(name, kind) for name, kind in kinds.items()})


def _stream(name: str, plain: Any, folder: Path) -> StreamConfig:
    where = f"streams.{name}"
    if not name.isprintable() or "/" in name or name.startswith(".") or len(name.encode()) > MOST_NAME:
        raise WJoinError("WJ901", f"{shown(where)} cannot name a stream and its folder")
    if not isinstance(plain, dict):
        raise WJoinError("WJ901", f"{where} is not a table", help=f"write [{where}]")
    table = _Table(plain, where, _STREAM)
    source = table.get("source", _TEXT)
    lines = source == STANDARD_INPUT or source.startswith(KAFKA)
    formats = _one_of(("json",) if lines else FORMATS)
    format = table.get("format", formats, "json" if lines else "parquet")
    declared = table.optional("schema", _TEXT)
    if declared is None and format != "parquet":
        raise table.wrong("schema", f"is missing, and {format} has no column types")
    schema = None if declared is None else parse_columns(declared, f"{where}.schema")
    time = table.get("time", _TEXT)
    keys = table.get("key", _NAMES, [])
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
        epoch=table.get("epoch", _one_of(EPOCHS), "seconds"),
        header=table.get("header", _BOOLEAN, True),
        delimiter=table.get("delimiter", _TEXT, ","),
        poll=table.get("poll", _TIME, "1 second") / 1e6,
        start=table.get("start", _one_of(("earliest", "latest")), "earliest"),
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


def _retention(table: "_Table") -> StoreRetention:
    rows = table.optional("window_rows", _whole(1))
    # Where event time is a number, so is the window.
    number = _whole(1).value(table.plain.get("window"))
    window = table.optional("window", _TIME) if number is None else number
    if (window is None) == (rows is None):
        raise table.wrong("window", "or window_rows is needed, but not both")
    most = table.optional("max_bytes", _SIZE)
    return StoreRetention(window, rows, most, table.get("consumer_lease", _TIME, "1 day") / 1e6)


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

    def wrong(self, entry: str, why: str) -> WJoinError:
        """Return the error of an entry."""
        return WJoinError("WJ901", f"{self._full(entry)} {why}")

    def table(self, entry: str) -> Mapping[str, Any]:
        """Return a table inside, empty where it is not given."""
        found = self.plain.get(entry, {})
        if not isinstance(found, dict):
            raise self.wrong(entry, "is not a table")
        return found

    def optional(self, entry: str, read: "_Read[T]") -> T | None:
        """Return an entry, None where it is not given."""
        return self.get(entry, read) if entry in self.plain else None

    def get(self, entry: str, read: "_Read[T]", default: Any = None) -> T:
        """Return an entry; ``default`` is what stands for it where it is not given."""
        given = self.plain.get(entry, default)
        if given is None:
            raise self.wrong(entry, "is missing")
        found = read.value(given)
        if found is None:
            raise self.wrong(entry, f"is {given!r:.60}, not {read.what}")
        return found


@dataclass(frozen=True)
class _Read(Generic[T]):
    """How an entry is read: its ``value``, None for what is none, and in words what it must be."""

    value: Callable[[Any], T | None]
    what: str


def _whole(least: int) -> _Read[int]:
    def value(given: Any) -> int | None:
        return given if type(given) is int and given >= least else None

    return _Read(value, f"a whole number of at least {least}")


def _one_of(choices: Collection[str]) -> _Read[str]:
    return _Read(lambda given: given if given in [*choices] else None, f"one of {', '.join(choices)}")


def _names(given: Any) -> tuple[str, ...] | None:
    listed = [given] if isinstance(given, str) else given
    is_list = isinstance(listed, list) and all(isinstance(each, str) for each in listed)
    return tuple(listed) if is_list else None


_TEXT = _Read(lambda given: given if isinstance(given, str) and given else None, "a string")
_NAMES = _Read(_names, "a list of names")
_BOOLEAN = _Read(lambda given: given if isinstance(given, bool) else None, "true or false")
_SIZE = _Read(
    lambda given: size(given) or None if isinstance(given, str) else _whole(1).value(given),
    "a size such as '64 MB'",
)
_LISTEN = _Read(lambda given: parse_listen(given) if isinstance(given, str) else None, "HOST:PORT")
_TIME = _Read(
    lambda given: microseconds(given) if isinstance(given, str) else None,
    "a time such as '10 minutes'",
)


def _nearest(name: str, known: Collection[str]) -> str | None:
    near = difflib.get_close_matches(name, [*known], n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else None
