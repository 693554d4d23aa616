"""What has changed between two versions of some bytes, for one who has the first."""

import zlib

import numpy as np


def patch(since: bytes, now: bytes) -> bytes:
    """Return what turns ``since`` into ``now``: small where few bytes differ, or these are few themselves.

    >>> patched(b"abc", patch(b"abc", b"abd!"))
    b'abd!'
    """
    differing = np.frombuffer(now, np.uint8).copy()
    shared = min(len(since), len(now))
    differing[:shared] ^= np.frombuffer(since, np.uint8, shared)
    return zlib.compress(differing.tobytes(), 1)


def patched(since: bytes, change: bytes) -> bytes:
    """Return what ``change`` turns ``since`` into."""
    now = np.frombuffer(zlib.decompress(change), np.uint8).copy()
    shared = min(len(since), len(now))
    now[:shared] ^= np.frombuffer(since, np.uint8, shared)
    return now.tobytes()
