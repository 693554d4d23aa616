"""``wjoin.toml``: settings and parameters of the scripts in its folder, and profiles that change them."""

import datetime
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.suggestions import suggestion

FILE = "wjoin.toml"

_TABLES = ("settings", "parameters", "profiles")
_Scalar = str | int | float | bool | datetime.date | datetime.time


@dataclass(frozen=True)
class Project:
    """What a wjoin.toml gives: settings of Spark and wjoin by name, and the values of parameters.

    ``file`` is where it stands, None where there is none.
    """

    settings: dict[str, str] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=dict)
    file: Path | None = None


def read_project(folder: Path, profile: str | None) -> Project:
    """Return what the wjoin.toml of a folder gives, that of ``profile`` before the rest.

    Raises WJoinError WJ619 for a file that cannot be read or has entries that mean nothing, WJ620 for a
    profile that it has not.
    """
    file = folder / FILE
    try:
        entries = tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        if profile is None:
            return Project()
        help = f"put profiles into {file}: [profiles.{profile}.parameters]"
        raise WJoinError(
            "WJ620", f"there is no profile {profile}: no {FILE} in {folder}", help=help
        ) from None
    except (OSError, UnicodeError, tomllib.TOMLDecodeError) as error:
        raise WJoinError("WJ619", f"{file} cannot be read: {error}") from error
    _check(entries, _TABLES, file, "")
    parts = [entries]
    profiles = _table(entries, "profiles", file, "")
    if profile is not None:
        if profile not in profiles:
            help = suggestion(profile, profiles) or f"it has {', '.join(profiles) or 'none'}"
            raise WJoinError("WJ620", f"{file} has no profile {profile}", help=help)
        _check(_table(profiles, profile, file, "profiles."), _TABLES[:2], file, f"profiles.{profile}.")
        parts.append(profiles[profile])
    settings: dict[str, str] = {}
    parameters: dict[str, Any] = {}
    for part in parts:
        settings |= dict(_settings(_table(part, "settings", file, ""), file))
        parameters |= {
            name: _scalar(value, f"parameters.{name}", file)
            for name, value in _table(part, "parameters", file, "").items()
        }
    return Project(settings, parameters, file)


def _check(entries: Mapping[str, object], known: tuple[str, ...], file: Path, within: str) -> None:
    unknown = next((name for name in entries if name not in known), None)
    if unknown is not None:
        help = suggestion(unknown, known) or f"known: {', '.join(f'[{within}{name}]' for name in known)}"
        raise WJoinError("WJ619", f"{file} has an unknown entry {within}{unknown}", help=help)


def _table(entries: Mapping[str, Any], name: str, file: Path, within: str) -> dict[str, Any]:
    table = entries.get(name, {})
    if not isinstance(table, dict):
        raise WJoinError("WJ619", f"{within}{name} of {file} is not a table", help=f"write [{within}{name}]")
    return table


def _settings(entries: Mapping[str, Any], file: Path, within: str = "") -> list[tuple[str, str]]:
    """Return settings by their dotted names, which TOML reads as tables inside each other."""
    found = []
    for name, value in entries.items():
        if isinstance(value, dict):
            found += _settings(value, file, f"{within}{name}.")
            continue
        scalar = _scalar(value, f"settings.{within}{name}", file)
        found.append((within + name, str(scalar).lower() if isinstance(scalar, bool) else str(scalar)))
    return found


def _scalar(value: object, name: str, file: Path) -> object:
    if not isinstance(value, _Scalar):
        help = "give a string, a number, true or false, a date or a time"
        raise WJoinError("WJ619", f"{name} of {file} is not a single value", help=help)
    return value
