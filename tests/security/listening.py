"""Where a process listens."""

import ipaddress
import struct
from pathlib import Path

LISTENS = "0A"


def listening(process: int) -> set[tuple[str, int]]:
    """Return the addresses and ports at which a process takes connections."""
    own = {each.readlink().name for each in Path(f"/proc/{process}/fd").iterdir() if each.is_symlink()}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == LISTENS and f"socket:[{inode}]" in own:
                address, port = local.split(":")
                words = struct.unpack(f">{len(address) // 8}I", bytes.fromhex(address))
                packed = struct.pack(f"<{len(words)}I", *words)
                found.add((str(_unmapped(ipaddress.ip_address(packed))), int(port, 16)))
    return found


def _unmapped(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> object:
    return getattr(address, "ipv4_mapped", None) or address
