"""What goes wrong between a site and whoever asks it, and how it travels."""

import json

from wjoin.grammar.shown import shown

KINDS = ("unreachable", "refused", "lineage", "gone", "schema", "limit", "broken", "failed", "busy", "filter")
"""Kinds of failures. "busy" is retried by the client, and reaches its caller as "unreachable" at the end;
where the site does not have a "filter", the client pushes it and asks again.
"""


class SiteError(Exception):
    """What a site could not do, or why it could not be asked.

    ``kind`` is "unreachable" (no connection, or no answer in time), "refused" (token, certificate),
    "lineage" (the site's stream was begun anew), "gone" (rows have left the window), "schema" (no such stream
    or column), "limit" (more than the site allows), "broken" (a request or an answer that cannot be read),
    "filter" (a filter is named that the site does not have) or "failed". ``site`` is its address, empty
    inside the site itself.
    """

    def __init__(self, kind: str, message: str, site: str = "", help: str | None = None) -> None:
        super().__init__(kind, message, site, help)
        self.kind = kind
        self.message = message
        self.site = site
        self.help = help

    def __str__(self) -> str:
        """Return the message with the site's address and the remedy."""
        where = f"site {self.site}: " if self.site else ""
        return f"{where}{self.message}" + (f"\nhelp: {self.help}" if self.help else "")

    def at(self, site: str) -> "SiteError":
        """Return the same of a site."""
        return SiteError(self.kind, self.message, site=site, help=self.help)


def packed(error: SiteError) -> bytes:
    """Return what travels beside the message of a failed call."""
    told = {"kind": error.kind, "message": error.message, "help": error.help}
    return json.dumps(told, ensure_ascii=False).encode("utf-8", "backslashreplace")


def unpacked(extra: bytes | None, site: str) -> SiteError | None:
    """Return the error that a site has sent, None where it has sent none or what cannot be read."""
    try:
        found = json.loads(extra or b"null")
    except ValueError:
        return None
    if (
        not isinstance(found, dict)
        or found.get("kind") not in KINDS
        or not isinstance(found.get("message"), str)
    ):
        return None
    help = found.get("help")
    return SiteError(
        found["kind"],
        shown(found["message"]),
        site=site,
        help=shown(help) if isinstance(help, str) else None,
    )
