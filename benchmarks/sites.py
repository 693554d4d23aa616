"""What a stream at a site costs: bytes on the wire, and rows a second, of whole rows and of partial tuples.

Packets of 1,500 bytes, of which one of a hundred has a match, come from a site on loopback and are joined on
Spark with a stream at hand, results dropped. The same is done with all rows in local Parquet files. Bytes are
counted at the socket, by a proxy between Spark and the site that limits nothing, in runs of their own: all
of a run, what is asked and answered before it as well. Rates are of medians over micro-batches, without the
proxy, in practised processes that take turns. Fails when systems differ in the number of results, or one has
failed. Linux only.
"""

import argparse
import contextlib
import dataclasses
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import kit_path  # noqa: F401 (finds tests.kit)
from ending import end_with_all, ended, tell
from outcomes import Outcome, outcomes
from run_system import COMMITS, Task
from running import Failure
from sites_loads import PacketLoad, write_packets
from sites_systems import SYSTEMS, URL
from tables import aligned
from targets import Target
from turns import TURN, Player, take_turns
from watched import REPORT, Watched, places

from tests.kit.slow_link import SlowLink, port_of
from wjoin.testing.site import Site

LOAD = PacketLoad(window=5, batch_rows=40_000, batches=10)
QUICK = PacketLoad(window=5, batch_rows=20_000, batches=4)

FILLING = 2
"""Micro-batches after which the window is full."""

COUNTED = ("wjoin-simple", "wjoin-semijoin", "wjoin-held")
"""The systems whose bytes are counted."""

_STREAM = """
[streams.{name}]
source = "{folder}/{name}/a"
time = "ts"
key = ["dest"]
window = "1 hour"
"""


def options() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--quick", action="store_true", help="a fifth of the rows, and little practice")
    add("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS), help="whose rates are measured")
    add("--no-bytes", action="store_true", help="measure rates only")
    add("--warm-up", type=float, metavar="SECONDS", help="practice of each system; 20 by default")
    add("--measured", type=float, default=10, help="seconds that it is measured then (%(default)s)")
    add("--memory", default="2g", help="heap of each system's JVM (%(default)s)")
    add("--scratch", help="where data and checkpoints are kept while it runs")
    add("--json", type=Path, help="write the outcomes to this file, too")
    arguments = parser.parse_args()
    if arguments.warm_up is None:
        arguments.warm_up = 5 if arguments.quick else 20
    return arguments


@contextlib.contextmanager
def _served(load: PacketLoad, data: Path) -> Iterator[Site]:
    """Write a load, and run a site that has it."""
    write_packets(load, data / "load")
    write_packets(load.practice, data / "practice")
    streams = "".join(_STREAM.format(name=name, folder=data) for name in ("load", "practice"))
    with Site(data / "site", streams) as site:
        for name, each in (("load", load), ("practice", load.practice)):
            site.wait_for(name, each.packets * each.batches)
        (data / URL).write_text(site.url)
        yield site


def rates(
    names: Sequence[str], load: PacketLoad, data: Path, arguments: argparse.Namespace
) -> tuple[list[Outcome], list[Failure]]:
    """Run systems in turns; one that fails hinders no other."""
    found: list[Outcome] = []
    failed: list[Failure] = []
    print(f"  {len(names)} systems in turns ...", file=sys.stderr, flush=True)
    with contextlib.ExitStack() as stack:
        prepared = [_watched(name, load, data, arguments, stack) for name in names]
        stops = take_turns([each.start for each in prepared], TURN)
        for name, each, stopped in zip(names, prepared, stops, strict=True):
            if each.words is not None:
                failed.append(Failure(name, each.words))
                continue
            told = (each.scratch / REPORT, each.usage, stopped)
            system = SYSTEMS[name]
            found += outcomes("sites", name, system.load(load), FILLING, *told, whole_rows=system.whole_rows)
    return found, failed


def bytes_on_the_wire(
    load: PacketLoad, site: Site, data: Path, arguments: argparse.Namespace
) -> tuple[dict[str, int], list[Failure]]:
    """Return the bytes of one run of each system, both directions, and what has failed."""
    found: dict[str, int] = {}
    failed: list[Failure] = []
    once = argparse.Namespace(**{**vars(arguments), "warm_up": 0.0, "measured": 0.0})
    through = data / "through"
    through.mkdir()
    for name in ("load", "practice"):
        (through / name).symlink_to(data / name)
    for name in COUNTED:
        print(f"  {SYSTEMS[name].title}: its bytes ...", file=sys.stderr, flush=True)
        with SlowLink(port_of(site.url)) as link, contextlib.ExitStack() as stack:
            host, port = link.address
            (through / URL).write_text(f"grpc://{host}:{port}")
            watched = _watched(name, load, through, once, stack)
            _end(watched.start())
            if watched.words is None:
                found[name] = link.passed.size
            else:
                failed.append(Failure(f"{name}, its bytes", watched.words))
    return found, failed


def _end(player: Player) -> None:
    player.process.wait()


def _watched(
    name: str, load: PacketLoad, data: Path, arguments: argparse.Namespace, stack: contextlib.ExitStack
) -> Watched:
    def task(folder: Path) -> Task:
        return Task(
            system=name,
            load=dataclasses.asdict(load),
            sink="noop",
            memory=arguments.memory,
            warm_up=arguments.warm_up,
            fresh=False,
            settings={},
            measured=arguments.measured,
            **places(data, folder),
        )

    return Watched("run_sites.py", task, COMMITS, arguments.scratch, stack)


def _table(found: Sequence[Outcome]) -> str:
    parts = list(found[0].parts)
    lines = [["", "rows/s", "batch s", "CPU s", "state MB", "results", *parts, "tasks, by layer"]]
    for each in found:
        figures = (
            f"{each.rows_per_second:,.0f}",
            f"{each.seconds:.3f}",
            f"{each.processor:.2f}",
            f"{each.state_bytes / 1e6:,.1f}",
            f"{each.results:,}",
        )
        steps = (f"{each.parts[part]:.0f}" for part in parts)
        lines.append([SYSTEMS[each.system].title, *figures, *steps, each.layers_text])
    return aligned(lines)


def site_targets(found: Sequence[Outcome], wire: dict[str, int], load: PacketLoad) -> list[Target]:
    """Return a line for everything of which both sides were measured."""
    lines: list[Target] = []
    rate = {each.system: each.rows_per_second for each in found}

    def ratio(what: str, system: str, other: str, wanted: float | None) -> None:
        if {system, other} <= set(rate):
            lines.append(Target(what, rate[system] / rate[other], "×", wanted, most=False))

    packets = load.packets * load.batches
    for name, size in wire.items():
        lines.append(Target(f"{SYSTEMS[name].title}: bytes on the wire for a packet", size / packets, "B"))
    if {"wjoin-simple", "wjoin-semijoin"} <= set(wire):
        what = "bytes on the wire: SIMPLE / SEMIJOIN"
        lines.append(Target(what, wire["wjoin-simple"] / wire["wjoin-semijoin"], "×", 20, most=False))
    if {"wjoin-simple", "wjoin-held"} <= set(wire):
        what = "bytes on the wire: SIMPLE / HELD"
        lines.append(Target(what, wire["wjoin-simple"] / wire["wjoin-held"], "×", most=False))
    ratio("loopback: rate of SEMIJOIN / of SIMPLE", "wjoin-semijoin", "wjoin-simple", 0.7)
    ratio("loopback: rate of HELD / of SIMPLE", "wjoin-held", "wjoin-simple", None)
    ratio("loopback: rate of SIMPLE / of local Parquet", "wjoin-simple", "wjoin-local", 0.7)
    ratio("loopback: rate of reading a site / local Parquet, no join", "read-site", "read-local", None)
    return lines


def disagreements(found: Sequence[Outcome]) -> list[str]:
    """Return a sentence where systems gave different numbers of results."""
    counts = {each.system: each.results for each in found if SYSTEMS[each.system].joins}
    return [f"{counts}"] if len(set(counts.values())) > 1 else []


def main() -> int:
    """Run what the command line asks for; 1 when systems disagree, or one has failed."""
    arguments = options()
    end_with_all()
    load = QUICK if arguments.quick else LOAD
    print(load.title, flush=True)
    wire: dict[str, int] = {}
    failures: list[Failure] = []
    with tempfile.TemporaryDirectory("-data", "wjoin-", arguments.scratch) as folder:
        data = Path(folder)
        with _served(load, data) as site:
            if not arguments.no_bytes:
                wire, failures = bytes_on_the_wire(load, site, data, arguments)
            found, failed = rates(arguments.systems, load, data, arguments)
    failures += failed
    tell(found, failures, _table)
    return ended(found, site_targets(found, wire, load), disagreements, failures, arguments.json)


if __name__ == "__main__":
    sys.exit(main())
