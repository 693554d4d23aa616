"""`wjoin site serve`: a site as a process, until it is told to end."""

import logging
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from wjoin.grammar.errors import WJoinError
from wjoin.sites.access import read_token
from wjoin.sites.config import SiteConfig, read_config
from wjoin.sites.metrics import Metric, MetricsServer, exposition
from wjoin.sites.server import SiteServer
from wjoin.sites.site import Site


def serve(path: Path) -> None:
    """Serve the site of a configuration file until SIGTERM or SIGINT. Raises WJoinError."""
    config = read_config(path)
    token = None if config.token_file is None else read_token(config.token_file)
    _log()
    site = Site(config)
    server = _listening(site, config, token)
    stopped = threading.Event()
    try:
        site.start()
        if config.metrics is not None:
            asked = None if config.metrics.loopback else token
            MetricsServer(config.metrics, asked, lambda: exposition(_metrics(site, server))).start()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopped.set())
        scheme = "grpc" if config.certificate is None else "grpc+tls"
        host = f"[{config.listen.host}]" if ":" in config.listen.host else config.listen.host
        print(f"Site: {scheme}://{host}:{server.port}", file=sys.stderr, flush=True)
        stopped.wait()
    finally:
        server.guard.stop()
        site.stop()
    server.shutdown()
    print("Stopped cleanly; the next run goes on from here", file=sys.stderr, flush=True)


def _listening(site: Site, config: SiteConfig, token: str | None) -> SiteServer:
    try:
        return SiteServer(site, token)
    except WJoinError:
        raise
    except Exception as error:
        reason = str(error).partition(". Detail")[0]
        raise WJoinError("WJ903", f"{config.listen} cannot be served: {reason}") from error


def _metrics(site: Site, server: SiteServer) -> Iterator[Metric]:
    yield from site.metrics()
    guard = server.guard
    for name, kind, help, value in (
        ("connections", "gauge", "Open connections.", guard.open),
        ("connections_cut_total", "counter", "Connections that were too many, or sent too much.", guard.cut),
        ("refused_total", "counter", "Calls without the token.", server.check.refused),
    ):
        yield Metric(f"wjoin_site_{name}", kind, help, (({}, float(value)),))


def _log() -> None:
    """Write what a site tells to standard error, each line with its time."""
    logging.disable(logging.NOTSET)
    logger = logging.getLogger("wjoin.sites")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    if not logger.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        logger.addHandler(handler)
