"""Whether an address is for this machine alone."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Return whether a name or number of a machine is that of this one, for itself alone."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
