"""A real Jupyter kernel, and what its cells show."""

import queue
import time
from dataclasses import dataclass, field
from typing import Any

from jupyter_client.manager import KernelManager

LIMIT_SECONDS = 240


@dataclass
class Output:
    """What one run of a cell has shown; outputs that are replaced keep the newest."""

    status: str = ""
    error: str = ""
    streams: str = ""
    shown: list[dict[str, Any]] = field(default_factory=list)

    def texts(self) -> list[str]:
        return [each["text/plain"] for each in self.shown]

    def html(self) -> str:
        return "\n".join(each.get("text/html", "") for each in self.shown)


class Kernel:
    """Runs cells; ``displays`` has the newest of each output that can be replaced, by its name."""

    def __init__(self, folder: str, environment: dict[str, str]) -> None:
        self.manager = KernelManager(kernel_name="python3")
        self.manager.start_kernel(cwd=folder, env=environment)
        self._client = self.manager.client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=LIMIT_SECONDS)
        self.displays: dict[str, list[dict[str, Any]]] = {}
        self._places: dict[str, tuple[Output, int]] = {}
        self._of: dict[str, Output] = {}
        self._idle: set[str] = set()

    def begin(self, code: str, cell_id: str | None = None) -> str:
        """Send a cell to the kernel, and return the name of its run."""
        message = self._client.session.msg(
            "execute_request",
            {
                "code": code,
                "silent": False,
                "store_history": True,
                "user_expressions": {},
                "allow_stdin": False,
                "stop_on_error": True,
            },
            metadata={} if cell_id is None else {"cellId": cell_id},
        )
        self._client.shell_channel.send(message)
        name = message["header"]["msg_id"]
        self._of[name] = Output()
        return name

    def run(self, code: str, cell_id: str | None = None) -> Output:
        """Run a cell to its end."""
        return self.end(self.begin(code, cell_id))

    def end(self, name: str) -> Output:
        """Wait for the end of a run."""
        self.until(lambda: name in self._idle, f"the end of {name}")
        reply = self._client.get_shell_msg(timeout=LIMIT_SECONDS)
        while reply["parent_header"].get("msg_id") != name:
            reply = self._client.get_shell_msg(timeout=LIMIT_SECONDS)
        self._of[name].status = reply["content"]["status"]
        return self._of[name]

    def output(self, name: str) -> Output:
        return self._of[name]

    def until(self, condition: Any, what: str) -> None:
        """Take what the kernel sends until a condition holds."""
        ends = time.monotonic() + LIMIT_SECONDS
        while not condition():
            assert time.monotonic() < ends, f"waited for {what}: {self._of}"
            self._take()

    def _take(self) -> None:
        try:
            message = self._client.get_iopub_msg(timeout=0.2)
        except queue.Empty:
            return
        content, kind = message["content"], message["msg_type"]
        run = message["parent_header"].get("msg_id", "")
        output = self._of.setdefault(run, Output())
        name = content.get("transient", {}).get("display_id")
        if kind == "update_display_data":
            self.displays.setdefault(name, []).append(content["data"])
            shown, place = self._places[name]
            shown.shown[place] = content["data"]
        elif kind in ("display_data", "execute_result"):
            if name is not None:
                self.displays.setdefault(name, []).append(content["data"])
                self._places[name] = output, len(output.shown)
            output.shown.append(content["data"])
        elif kind == "stream":
            output.streams += content["text"]
        elif kind == "error":
            output.error = "\n".join(content["traceback"])
        elif kind == "status" and content["execution_state"] == "idle":
            self._idle.add(run)

    def close(self) -> None:
        self._client.stop_channels()
        self.manager.shutdown_kernel(now=True)
