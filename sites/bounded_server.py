"""An HTTP server that answers a limited number of requests at a time."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class BoundedServer(ThreadingHTTPServer):
    """Answers ``most`` requests at a time, each in a thread that ends with the process."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler], most: int) -> None:
        self._free = threading.BoundedSemaphore(most)
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread, unless there are too many of them."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
            return
        self.turn_away(request)
        self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer a request."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def turn_away(self, request: Any) -> None:
        """Say that there are too many; nothing unless a server does."""
