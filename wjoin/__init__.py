"""wjoin: SQL window joins over many data streams, on Apache Spark."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

_ROOT = Path(__file__).resolve().parent.parent
if (_ROOT / "grammar").is_dir() and not (_ROOT / "wjoin" / "grammar").is_dir():
    # In a source checkout the layers lie beside this folder, not inside it.
    __path__.append(str(_ROOT))

if TYPE_CHECKING:
    from wjoin.checkpoints.committed import committed_files as committed_files
    from wjoin.connecting import connect as connect
    from wjoin.grammar.errors import WJoinError as WJoinError
    from wjoin.grammar.errors import WJoinWarning as WJoinWarning
    from wjoin.session import Session as Session
    from wjoin.session import disable as disable
    from wjoin.session import enable as enable
    from wjoin.settings.options import configure as configure
    from wjoin.udfs.predicate import predicate as predicate

__version__ = "0.1.0"

_HOMES = {
    "Session": "wjoin.session",
    "WJoinError": "wjoin.grammar.errors",
    "WJoinWarning": "wjoin.grammar.errors",
    "committed_files": "wjoin.checkpoints.committed",
    "configure": "wjoin.settings.options",
    "connect": "wjoin.connecting",
    "disable": "wjoin.session",
    "enable": "wjoin.session",
    "predicate": "wjoin.udfs.predicate",
}
__all__ = list(_HOMES)


def load_ipython_extension(ipython: Any) -> None:
    """Give a notebook the magics ``%wjoin`` and ``%%wjoin``: ``%load_ext wjoin``."""
    from wjoin.notebook.magics import WJoinMagics

    if WJoinMagics.__name__ not in ipython.magics_manager.registry:
        ipython.register_magics(WJoinMagics)


def __getattr__(name: str) -> Any:
    # Lazy, so that parsing and planning need neither pyspark nor a JVM.
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'wjoin' has no attribute '{name}'")
