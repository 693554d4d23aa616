"""`wjoin site status`: the numbers of a site's streams as a table."""

from pathlib import Path
from typing import Any

from wjoin.sites.access import read_secret, read_token
from wjoin.sites.client import SiteClient
from wjoin.sites.config import SiteConfig
from wjoin.sites.protocol import SiteAddress
from wjoin.sites.units import shown_size

_HEAD = ("stream", "state", "first", "next", "kept", "on disk", "broken", "consumers (rows behind)")
_PATIENCE = 5.0


def address_of(config: SiteConfig) -> SiteAddress:
    """Return where a site of this machine is, by its configuration. Raises WJoinError WJ608 or WJ902."""
    token = None if config.token_file is None else read_token(config.token_file)
    return _address(str(config.listen), token, config.certificate)


def address_at(url: str, token_file: Path | None, certificate: Path | None) -> SiteAddress:
    """Return the address of a site with what it takes to be let in. Raises WJoinError WJ608 or WJ902."""
    token = None if token_file is None else read_token(token_file)
    if "://" not in url:
        return _address(url, token, certificate)
    pem = None if certificate is None else read_secret(certificate).decode()
    return SiteAddress(url, token, pem, patience=_PATIENCE, call_timeout=_PATIENCE)


def _address(listen: str, token: str | None, certificate: Path | None) -> SiteAddress:
    scheme = "grpc" if certificate is None else "grpc+tls"
    host, _, port = listen.rpartition(":")
    host = "localhost" if host in ("0.0.0.0", "[::]") else host
    pem = None if certificate is None else read_secret(certificate).decode()
    return SiteAddress(f"{scheme}://{host}:{port}", token, pem, patience=_PATIENCE, call_timeout=_PATIENCE)


def status(address: SiteAddress) -> str:
    """Return the table. Raises SiteError."""
    with SiteClient(address) as client:
        found = client.status()
    return table([_HEAD, *(_cells(each) for each in found["streams"])])


def _cells(stream: dict[str, Any]) -> tuple[str, ...]:
    if "next" not in stream:
        return (stream["stream"], stream["state"], *[""] * (len(_HEAD) - 2))
    consumers = ", ".join(f"{name} ({behind:,})" for name, behind in stream["consumers"].items())
    first, next = stream["first"], stream["next"]
    numbers = (f"{first:,}", f"{next:,}", f"{next - first:,}", shown_size(stream["bytes"]))
    return stream["stream"], stream["state"], *numbers, f"{stream['broken']:,}", consumers


def table(rows: list[tuple[str, ...]]) -> str:
    """Return cells in columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)
