"""A Kafka broker on this machine, one process on loopback: for tests, and for trying things out."""

import os
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

from wjoin.testing.own_process import OwnProcess
from wjoin.testing.waiting import free_ports

_CLUSTER = "4L6g3nShT-eMCtK--X86sw"
_JAVA_OPTIONS = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# On a busy machine it may be silent for long: its controller, itself, must not take it for lost. One that
# comes back after it was killed is another broker to its controller, which refuses it until that has passed.
_SESSION_MS = 120_000
_SESSION_AFTER_A_KILL_MS = 9_000
_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
log.dirs={folder}/log
num.partitions={partitions}
broker.session.timeout.ms={session}
initial.broker.registration.timeout.ms=120000
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
"""


class Broker(OwnProcess):
    """A broker that can be started, stopped or killed, and started again with what it holds.

    ``jars`` is a folder with all jars of a broker, ``folder`` a new one for its data. A topic is made by the
    first record that is written to it, and has ``partitions`` partitions. As a context manager it runs inside
    of the block.
    """

    def __init__(self, jars: Path, folder: Path, partitions: int = 2) -> None:
        super().__init__(folder / "broker.out")
        self._jars, self._folder = jars, folder
        self._partitions, self._ports = partitions, free_ports(2)
        self.servers = f"127.0.0.1:{self._ports[0]}"
        folder.mkdir(parents=True, exist_ok=True)
        self._properties = folder / "server.properties"
        self._configure(_SESSION_MS)
        format_log = ("kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(self._properties))
        subprocess.run(self._java(*format_log), check=True, capture_output=True)

    @property
    def command(self) -> Sequence[str]:
        """How it is started."""
        return self._java("kafka.Kafka", str(self._properties))

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None:
            super().kill()
            self._configure(_SESSION_AFTER_A_KILL_MS)

    def _configure(self, session_ms: int) -> None:
        port, controller = self._ports
        text = _PROPERTIES.format(
            port=port,
            controller=controller,
            folder=self._folder,
            partitions=self._partitions,
            session=session_ms,
        )
        self._properties.write_text(text)

    def answers(self) -> bool:
        """Return whether it takes connections."""
        host, _, port = self.servers.partition(":")
        try:
            with socket.create_connection((host, int(port)), timeout=1):
                return True
        except OSError:
            return False

    def _java(self, *arguments: str) -> list[str]:
        home = os.environ.get("JAVA_HOME")
        java = str(Path(home) / "bin" / "java") if home else "java"
        return [java, *_JAVA_OPTIONS, "-cp", f"{self._jars}/*", *arguments]
