"""A request that comes by HTTP/2, and its answer."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from wjoin.sites.wire import Message

PREFIX = 5


class RefusedConnection(Exception):  # noqa: N818 (it is no failure of this program)
    """A connection is to be cut, and why."""


@dataclass(eq=False)
class Stream:
    """A request and its answer.

    ``body`` is gRPC's message with its head; ``size`` what that says. Of the answer ``pending`` is the
    message that is being sent, ``slow`` since when it hardly leaves and what was left then, and ``end`` the
    headers that it ends with. ``work`` makes messages; only one thread does at a time (``working``), and what
    it makes for a stream that is ``gone`` is thrown away.
    """

    number: int
    path: bytes
    began: float
    window: int
    body: bytearray = field(default_factory=bytearray)
    size: int = 0
    reserved: int = 0
    waits: bool = False
    whole: bool = False
    taken: bool = False
    headed: bool = False
    pending: Message = field(default_factory=list)
    left: int = 0
    slow: tuple[float, int] | None = None
    end: bytes | None = None
    work: Iterator[Message] | None = None
    working: bool = False
    gone: bool = False

    @property
    def message(self) -> memoryview:
        """The message, once it is whole."""
        return memoryview(self.body)[PREFIX:]
