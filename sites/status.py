"""`wjoin site status` and `release`: the numbers of a site's streams as a table, and who holds their rows."""

from pathlib import Path
from typing import Any

from wjoin.grammar.shown import shown
from wjoin.sites.client import SiteClient
from wjoin.sites.config import SiteConfig
from wjoin.sites.protocol import SiteAddress
from wjoin.sites.secret_files import read_certificate, read_token
from wjoin.sites.units import shown_size

_HEAD = ("stream", "state", "first", "next", "kept", "on disk", "broken", "consumers (rows behind)")
_PATIENCE = 5.0

_SILENT = 120.0
"""Seconds after which a consumer is shown as silent: a query that runs tells each half a minute."""


def address_of(config: SiteConfig) -> SiteAddress:
    """Return where a site of this machine is, by its configuration. Raises WJoinError WJ608 or WJ902."""
    return address_at(str(config.listen), config.token_file, config.certificate)


def address_at(url: str, token_file: Path | None, certificate: Path | None) -> SiteAddress:
    """Return the address of a site with what it takes to be let in; ``url`` may be HOST:PORT alone.

    Raises WJoinError WJ608 or WJ902.
    """
    token = None if token_file is None else read_token(token_file)
    pem = None if certificate is None else read_certificate(certificate)
    if "://" not in url:
        host, _, port = url.rpartition(":")
        host = "localhost" if host in ("0.0.0.0", "[::]") else host
        url = f"{'grpc' if certificate is None else 'grpc+tls'}://{host}:{port}"
    return SiteAddress(url, token, pem, patience=_PATIENCE, call_timeout=_PATIENCE)


def status(address: SiteAddress) -> str:
    """Return the table. Raises SiteError."""
    with SiteClient(address) as client:
        found = client.status()
    return table([_HEAD, *(tuple(map(shown, _cells(each))) for each in found["streams"])])


def _cells(stream: dict[str, Any]) -> tuple[str, ...]:
    if "next" not in stream:
        return (stream["stream"], stream["state"], *[""] * (len(_HEAD) - 2))
    consumers = ", ".join(_consumer(name, told) for name, told in stream["consumers"].items())
    first, next = stream["first"], stream["next"]
    numbers = (f"{first:,}", f"{next:,}", f"{next - first:,}", shown_size(stream["bytes"]))
    return stream["stream"], stream["state"], *numbers, f"{stream['broken']:,}", consumers


def _consumer(name: str, told: dict[str, Any]) -> str:
    words = [f"{told['behind']:,}"]
    if told["floor"] is None:
        words.append("needs all")
    if told["silent"] >= _SILENT:
        words.append(f"silent for {told['silent']:,.0f} s")
    return f"{name} ({', '.join(words)})"


def release(address: SiteAddress, name: str) -> tuple[str, bool]:
    """Have a site let go of a consumer; return what to say, and whether there was one. Raises SiteError."""
    with SiteClient(address) as client:
        released = client.release(name)
        streams = [] if released else client.status()["streams"]
    if released:
        lines = (shown(f"{stream}: released {each}") for stream, names in released.items() for each in names)
        return "\n".join(lines), True
    known = sorted({each for stream in streams for each in stream.get("consumers", ())})
    there = shown(f"it has {', '.join(known)}") if known else "it has none"
    return f"the site has no consumer {name}; {there}", False


def table(rows: list[tuple[str, ...]]) -> str:
    """Return cells in columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)
