"""Whether an address is for this machine alone."""

import ipaddress
import re


def is_loopback(host: str) -> bool:
    """Return whether a name or number of a machine is that of this one, for itself alone."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_own_name(header: str | None) -> bool:
    """Return whether the Host header of a request names this machine as it names itself.

    Elsewhere a page of another site has had its name lead here (DNS rebinding).
    """
    if header is None:
        return False
    found = re.fullmatch(r"(\[[^\]]*\]|[^:]*)(?::\d*)?", header.strip())
    return found is not None and is_loopback(found[1].strip("[]"))
