"""Files of tokens and certificates, and who may name them; errors say nothing of what is in them."""

import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path

from wjoin.grammar.errors import WJoinError

LEAST_TOKEN, MOST_TOKEN = 16, 4096
"""Characters that a token has at the least and at the most."""

_MOST_SECRET = 1 << 20
# RFC 6750's: none of them means anything in a header.
_TOKEN = re.compile(rf"[A-Za-z0-9._~+/=-]{{1,{MOST_TOKEN}}}")


def read_token(file: Path, folders: Sequence[Path] | None = None) -> str:
    """Return the token of a file, which is in one of some folders, None for any.

    Raises WJoinError WJ608 or WJ902, without a word of what is in the file.
    """
    text = read_secret(file, folders).decode("utf-8", "replace")
    return checked_token(text.removesuffix("\n").removesuffix("\r"), f"what is in {file}")


def checked_token(token: str, what: str) -> str:
    """Return a token. Raises WJoinError WJ902 for what is none, without a word of it."""
    if len(token) < LEAST_TOKEN or not _TOKEN.fullmatch(token):
        letters = "letters, digits and -._~+/="
        message = f"{what} is not a token: one line of {LEAST_TOKEN} to {MOST_TOKEN:,} {letters}"
        raise WJoinError("WJ902", message, help="make one: wjoin site init FOLDER --listen HOST:PORT")
    return token


def read_certificate(file: Path, folders: Sequence[Path] | None = None) -> str:
    """Return the certificate of a file as PEM, as ``read_token`` does."""
    text = read_secret(file, folders).decode("utf-8", "replace")
    if "-----BEGIN CERTIFICATE-----" not in text:
        raise WJoinError("WJ902", f"{file} does not hold a certificate", help="give a file in PEM")
    return text


def read_secret(file: Path, folders: Sequence[Path] | None = None) -> bytes:
    """Return the bytes of a file, which is in one of some folders, None for any. Raises WJoinError WJ608.

    Of links counts where they lead to. Where folders are given, who names a file need not be who may read it.
    """
    how = os.O_RDONLY
    try:
        if folders is not None:
            file, how = _inside(file, folders), os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW
        with os.fdopen(os.open(file, how), "rb") as opened:
            if folders is not None and not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
                raise WJoinError("WJ608", f"{file} is not a file")
            found = opened.read(_MOST_SECRET + 1)
    except OSError as error:
        raise WJoinError("WJ608", f"{file} cannot be read: {error.strerror}") from error
    if len(found) > _MOST_SECRET:
        raise WJoinError("WJ608", f"{file} has more than {_MOST_SECRET:,} bytes", help="name another file")
    return found


def _inside(file: Path, folders: Sequence[Path]) -> Path:
    """Return the path of a file without links. Raises WJoinError WJ608 outside of the folders."""
    real = Path(os.path.realpath(file))
    if not any(real.is_relative_to(os.path.realpath(folder)) for folder in folders):
        named = ", ".join(map(str, folders)) or "none"
        raise WJoinError(
            "WJ608",
            f"statements may not name {file} as the file of a token or certificate",
            help=f"put it into a folder of spark.wjoin.tokenFolders, set by who starts Spark (now {named})",
        )
    return real
