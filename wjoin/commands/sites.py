"""The commands `wjoin site serve`, `init`, `status` and `release`."""

import argparse
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

from wjoin.grammar.errors import WJoinError

GOOD, FAILED = 0, 1

_ADDRESS = "grpc://host:port or grpc+tls://host:port"


def add_site(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    """Add the command `site` to a command line, and return it."""
    site = commands.add_parser("site", help="serve streams next to their data, for queries elsewhere")
    actions = site.add_subparsers(required=True, metavar="ACTION", dest="action")
    serve = actions.add_parser("serve", help="serve the streams of a configuration file")
    serve.add_argument("--config", type=Path, required=True, metavar="FILE", help="a site.toml")
    init = actions.add_parser("init", help="create a folder with a configuration, a token and a certificate")
    init.add_argument("folder", type=Path, metavar="FOLDER")
    init.add_argument(
        "--listen",
        default="127.0.0.1:7777",
        metavar="HOST:PORT",
        help="address to listen on (127.0.0.1:7777)",
    )
    status = actions.add_parser("status", help="show the streams of a running site")
    status.add_argument("address", nargs="?", metavar="ADDRESS", help=_ADDRESS)
    status.add_argument("--config", type=Path, metavar="FILE", help="the site.toml of a site on this machine")
    release = actions.add_parser("release", help="stop keeping rows for a query that will not come back")
    release.add_argument("address", metavar="ADDRESS", help=_ADDRESS)
    release.add_argument("name", metavar="NAME", help="a consumer as shown by status, or the id of its query")
    for each in (status, release):
        each.add_argument("--token-file", type=Path, metavar="FILE", help="a file with the site's token")
        each.add_argument(
            "--certificate", type=Path, metavar="FILE", help="PEM file of the certificate authority to trust"
        )
    return site


def run_site(options: argparse.Namespace) -> int:
    """Carry out `wjoin site`; return the exit status. Raises WJoinError."""
    from wjoin.sites.failures import SiteError

    try:
        return _ACTIONS[options.action](options)
    except SiteError as error:
        print(f"wjoin: {error}", file=sys.stderr)
        return FAILED


def _serve(options: argparse.Namespace) -> int:
    if importlib.util.find_spec("hpack") is None:
        raise WJoinError("WJ905", "a site needs the package hpack, which is not installed")
    from wjoin.sites.serve import serve

    serve(options.config)
    return GOOD


def _init(options: argparse.Namespace) -> int:
    from wjoin.sites.access import parse_listen
    from wjoin.sites.begin import init

    listen = parse_listen(options.listen)
    if listen is None:
        raise WJoinError("WJ901", f"--listen is {options.listen!r}, not HOST:PORT")
    for file in init(options.folder, listen):
        print(f"wrote {file}")
    print(f"Next: wjoin site serve --config {options.folder / 'site.toml'}")
    return GOOD


def _status(options: argparse.Namespace) -> int:
    from wjoin.sites.config import read_config
    from wjoin.sites.status import address_at, address_of, status

    if (options.address is None) == (options.config is None):
        raise WJoinError("WJ901", "give the address of a site, or --config and its file")
    if options.config is not None:
        address = address_of(read_config(options.config))
    else:
        address = address_at(options.address, options.token_file, options.certificate)
    print(status(address))
    return GOOD


def _release(options: argparse.Namespace) -> int:
    from wjoin.sites.status import address_at, release

    address = address_at(options.address, options.token_file, options.certificate)
    said, there = release(address, options.name)
    print(said if there else f"wjoin: {said}", file=sys.stdout if there else sys.stderr)
    return GOOD if there else FAILED


_ACTIONS: dict[str, Callable[[argparse.Namespace], int]] = {
    "serve": _serve,
    "init": _init,
    "status": _status,
    "release": _release,
}
