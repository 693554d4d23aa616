"""Build sdist and wheel, and try the wheel alone, in an empty environment of each Python.

They are built in a copy of what git tracks, so that no leftover gets in, and put into dist/. A try installs
the wheel with the newest versions of what it needs, runs README's first query, and the demo. ``--try-only``
installs a wheel with the Python that runs this script, which then needs no other package.
"""

import argparse
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
_README = ROOT / "README.md"
_QUERY = re.compile(r"^## A first query$.*?^```python\n(.*?)^```$\s*^```text\n(.*?)^```$", re.M | re.S)
_LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)\s]+)")
_PICTURE = re.compile(r"(!\[[^\]]*\]\()(?!\w+:)([^)\s]+)")
_UV = [sys.executable, "-m", "uv", "--quiet"]


def build(target: Path, repository: str | None) -> Path:
    """Build both into a folder, in place of what is there, and check them; return the path of the wheel.

    ``repository`` is the address of a public repository: links of README then lead there.
    """
    shutil.rmtree(target, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="wjoin-source-") as folder:
        source = Path(folder)
        for name in filter(None, _run("git", "ls-files", "-z", cwd=ROOT).split("\0")):
            if (ROOT / name).is_file():
                (source / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, source / name)
        if repository is not None:
            _publish_at(repository.rstrip("/"), source)
        _run(
            *_UV,
            "tool",
            "run",
            "--from",
            "build",
            "pyproject-build",
            "--installer",
            "uv",
            "--outdir",
            target,
            source,
        )
    _run(*_UV, "tool", "run", "twine", "check", "--strict", *target.iterdir())
    (wheel,) = target.glob("*.whl")
    folders = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    if {name for name in folders if not name.endswith(".dist-info")} != {"wjoin"}:
        sys.exit(f"{wheel.name} has other folders than wjoin: {', '.join(sorted(folders))}")
    return wheel


def _publish_at(repository: str, source: Path) -> None:
    readme = (source / "README.md").read_text("utf-8")
    readme = _PICTURE.sub(rf"\1{repository}/raw/HEAD/\2", readme)
    (source / "README.md").write_text(_LINK.sub(rf"{repository}/blob/HEAD/\1", readme), "utf-8")
    urls = {
        "Repository": "",
        "Documentation": "/blob/HEAD/docs/README.md",
        "Changelog": "/blob/HEAD/CHANGELOG.md",
    }
    lines = ["", "[project.urls]", *(f'{name} = "{repository}{path}"' for name, path in urls.items()), ""]
    with (source / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write("\n".join(lines))


def try_out(wheel: Path, interpreter: str, *, demo: bool, locked: bool = False) -> None:
    """Install a wheel into an empty environment of a Python, and run README's first query there.

    ``locked``: with the versions of requirements.lock instead of the newest ones; needs uv.
    """
    found = _QUERY.search(_README.read_text("utf-8"))
    if found is None:
        sys.exit("README has no first query with its result")
    query, expected = found.groups()
    with tempfile.TemporaryDirectory(prefix="wjoin-wheel-") as folder:
        empty, python = Path(folder, "empty"), Path(folder, "venv", "bin", "python")
        empty.mkdir()
        wanted = f"{wheel.resolve()}[demo]" if demo else str(wheel.resolve())
        if importlib.util.find_spec("uv"):
            _run(*_UV, "venv", "--python", interpreter, python.parents[1])
            lock = ("--constraint", ROOT / "requirements.lock") if locked else ()
            _run(*_UV, "pip", "install", "--python", python, *lock, wanted)
        else:
            _run(interpreter, "-m", "venv", python.parents[1])
            _run(python, "-m", "pip", "install", "--quiet", wanted)
        (empty / "query.py").write_text(query, "utf-8")
        printed = _run(python, "query.py", cwd=empty)
        if printed.strip() != expected.strip():
            sys.exit(f"README's first query has printed\n{printed}\ninstead of\n{expected}")
        _run(python.with_name("wjoin"), "docs", "--folder", empty / "docs", "--no-browser", cwd=empty)
        if demo:
            print(_run(python.with_name("wjoin"), "demo", cwd=empty).splitlines()[-1])


def _run(*command: object, cwd: Path | None = None) -> str:
    """Run a command and return what it has printed; end where it fails, with that."""
    environment = {name: value for name, value in _environment().items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} has failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def _environment() -> dict[str, str]:
    import os

    # No process that outlives the try.
    return {**os.environ, "WJOIN_PREPARE": "off"}


def main() -> int:
    """Build, check and try; return 1 where no Python was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--pythons",
        default=",".join(PYTHONS),
        help="versions to try, of those found; this: the one that runs this script",
    )
    parser.add_argument("--no-demo", action="store_true", help="run README's first query alone")
    parser.add_argument("--locked", action="store_true", help="with the versions of requirements.lock")
    parser.add_argument("--repository", help="address of the public repository, for the links of README")
    parser.add_argument("--try-only", type=Path, metavar="WHEEL", help="try a wheel on this Python alone")
    given = parser.parse_args()
    if given.try_only is not None:
        try_out(given.try_only, sys.executable, demo=not given.no_demo)
        return 0
    from matrix import find_python

    wheel = build(ROOT / "dist", given.repository)
    print(f"{wheel} ({wheel.stat().st_size / 1e6:.1f} MB): built and checked", flush=True)
    found = {
        version: sys.executable if version == "this" else find_python(version)
        for version in given.pythons.split(",")
    }
    for version, interpreter in found.items():
        if interpreter is None:
            print(f"Python {version}: not tried, this machine has none", flush=True)
        else:
            try_out(wheel, interpreter, demo=not given.no_demo, locked=given.locked)
            print(f"Python {version}: works", flush=True)
    return not any(found.values())


if __name__ == "__main__":
    sys.exit(main())
