"""How large the blocks of an answer are over a link."""

from wjoin.sites.protocol import MeasuredLink

LEAST_BLOCK = 64_000
"""Bytes of a block at the least: below, what each block has besides its rows counts."""

GREATEST_BLOCK = 8_000_000
"""Bytes of a block at the most; a site's max_block_bytes bounds it, too."""

_LATENCIES = 4
_LEAST_SECONDS = 0.1


def block_bytes(link: MeasuredLink, most: int = GREATEST_BLOCK) -> int:
    """Return how many bytes a block has, before compression: what the link brings in a short time.

    That time is four latencies, and 0.1 s at the least: on a slow link a connection that is lost costs one
    small block, and rows are worked on while others travel; on a fast one blocks are large. A block has 64 kB
    at the least, and ``most`` at the most.

    >>> block_bytes(MeasuredLink(latency=0.005, bytes_per_second=1e5))
    64000
    >>> block_bytes(MeasuredLink(latency=0.05, bytes_per_second=5e6))
    1000000
    >>> block_bytes(MeasuredLink(latency=0.0001, bytes_per_second=1e9))
    8000000
    """
    seconds = max(_LATENCIES * link.latency, _LEAST_SECONDS)
    return int(max(LEAST_BLOCK, min(seconds * link.bytes_per_second, most)))
