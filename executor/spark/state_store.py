"""The state of one worker in Spark's state store: its manifest, and its slices in pieces."""

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import MapState

from wjoin.executor.blocks import compressed, decode_block, decompressed, encoded
from wjoin.executor.spark.cache import SliceCache
from wjoin.executor.state.slices import Slice, Stored, digest_of, piece_names
from wjoin.executor.state.writing import Cutting

MANIFEST = "manifest"
"""The key of the manifest in Spark's state; those of slices begin with a number."""


@dataclass(frozen=True)
class StoredState:
    """The state of one worker in Spark's store, with a cache of its slices on this machine."""

    state: MapState
    cache: SliceCache

    def manifest(self) -> bytes | None:
        """Return the manifest, None before the first one."""
        stored = self.state.getValue((MANIFEST,))
        return None if stored is None else bytes(stored[0])

    def commit(self, manifest: bytes) -> None:
        """Write the next manifest, once all its slices are written."""
        self.state.updateValue((MANIFEST,), (manifest,))

    def load(self, stored: Slice) -> pa.RecordBatch:
        """Return a slice, from this machine's cache or from Spark's state."""
        cached = self.cache.get(stored.digest, stored.size)
        if cached is not None:
            return decode_block(cached)
        pieces = [self._piece(name) for name in piece_names(stored.name, stored.pieces)]
        block = b"".join(decompressed(piece, stored.compression) for piece in pieces)
        # It may be of an earlier attempt than the manifest is: the same rows, perhaps in another order.
        if digest_of(block) == stored.digest:
            self.cache.put(stored.digest, block)
        return decode_block(block)

    def _piece(self, name: str) -> bytes:
        value = self.state.getValue((name,))
        if value is None:
            raise RuntimeError(f"slice {name} is listed in the state but not stored in it")
        return bytes(value[0])

    def save(self, name: str, batch: pa.RecordBatch, cutting: Cutting) -> Stored:
        """Write a slice under a new name, in the pieces and with the compression that the rules say.

        How many pieces there are does not follow from how well they are compressed: another version of what
        compresses them may repeat the micro-batch.
        """
        data = encoded(batch)
        digest, size = digest_of(data), len(data)
        count = -(-size // cutting.piece)
        for number, own in enumerate(piece_names(name, count)):
            piece = data[number * cutting.piece : (number + 1) * cutting.piece]
            self.state.updateValue((own,), (compressed(piece, cutting.compression),))
        self.cache.put(digest, data)
        return Stored(size, digest, count, cutting.compression)

    def remove(self, stored: Slice) -> None:
        """Forget a slice."""
        for name in piece_names(stored.name, stored.pieces):
            self.state.removeKey((name,))
        self.cache.remove(stored.digest)
