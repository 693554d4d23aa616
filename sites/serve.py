"""`wjoin site serve`: a site as a process, until it is told to end."""

import logging
import os
import signal
import ssl
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.shown import shown
from wjoin.sites.access import Listen
from wjoin.sites.config import SiteConfig, read_config
from wjoin.sites.data_folder import locked
from wjoin.sites.exposition import Metric, exposition
from wjoin.sites.front import tls
from wjoin.sites.metrics import MetricsServer
from wjoin.sites.secret_files import read_secret, read_token
from wjoin.sites.server import SiteServer
from wjoin.sites.site import Site


def serve(path: Path) -> None:
    """Serve the site of a configuration file until SIGTERM or SIGINT. Raises WJoinError."""
    config = read_config(path)
    token = None if config.token_file is None else read_token(config.token_file)
    _log()
    # What is kept, and what else this process writes, is for its user alone.
    os.umask(0o077)
    lock = locked(config.data, [each.name for each in config.streams])
    site = Site(config)
    server = _listening(site, config, token)
    stopped = threading.Event()
    try:
        site.start()
        if config.metrics is not None:
            MetricsServer(*_metrics_door(config), lambda: exposition(_metrics(site, server), shown)).start(
                "site-metrics"
            )
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopped.set())
        scheme = "grpc" if config.certificate is None else "grpc+tls"
        host = f"[{config.listen.host}]" if ":" in config.listen.host else config.listen.host
        print(f"Site: {scheme}://{host}:{server.front.port}", file=sys.stderr, flush=True)
        stopped.wait()
    finally:
        server.front.stop()
        site.stop()
    lock.close()
    print("Stopped cleanly; the next run continues here", file=sys.stderr, flush=True)


def _listening(site: Site, config: SiteConfig, token: str | None) -> SiteServer:
    try:
        return SiteServer(site, token)
    except WJoinError:
        raise
    except Exception as error:
        reason = str(error).partition(". Detail")[0]
        raise WJoinError("WJ903", f"{config.listen} cannot be served: {reason}") from error


def _metrics_door(config: SiteConfig) -> tuple[Listen, str | None, ssl.SSLContext | None]:
    """Return where metrics are, their token, and what is shown for TLS; on loopback there is neither."""
    if config.metrics is None:
        raise AssertionError("metrics are not served")
    if config.metrics.loopback:
        return config.metrics, None, None
    file = config.metrics_token_file or config.token_file
    token = None if file is None else read_token(file)
    if config.certificate is None or config.key is None:
        return config.metrics, token, None
    return config.metrics, token, tls(read_secret(config.certificate), read_secret(config.key), ("http/1.1",))


def _metrics(site: Site, server: SiteServer) -> Iterator[Metric]:
    yield from site.metrics()
    front = server.front
    for name, kind, help, value in (
        ("connections", "gauge", "Open connections.", front.open),
        (
            "connections_cut_total",
            "counter",
            "Connections that were shut down: too many, too large, too slow.",
            front.cut,
        ),
        ("refused_total", "counter", "Calls without the token.", server.refused),
    ):
        yield Metric(f"wjoin_site_{name}", kind, help, (({}, float(value)),))


class _Lines(logging.Formatter):
    """Writes a message in one line, whatever names and records are in it."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (its name in logging)
        record.message = shown(record.message)
        return super().formatMessage(record)


def _log() -> None:
    """Write what a site tells to standard error, each line with its time."""
    logging.disable(logging.NOTSET)
    logger = logging.getLogger("wjoin.sites")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    if not logger.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(_Lines("%(asctime)s %(levelname)s %(message)s"))
        logger.addHandler(handler)
