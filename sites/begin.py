"""`wjoin site init`: a folder with a configuration, a token, and a certificate where one is wanted."""

import secrets
import shutil
import subprocess
from pathlib import Path

from wjoin.grammar.errors import WJoinError
from wjoin.sites.access import Listen

_DAYS = "825"

_CONFIG = """\
[site]
listen = "{listen}"
data = "data"
{access}metrics = "127.0.0.1:7778"
memory = "1 GB"

[streams.example]
source = "incoming"            # a folder of Parquet files that grows
time = "ts"                    # the event-time column
key = ["id"]                   # columns of the join, for the index by value
window = "10 minutes"
"""


def init(folder: Path, listen: Listen) -> list[Path]:
    """Make a folder with what a site needs, and return the files; nothing that is there is written over.

    For an address that is not loopback there are a token and a self-signed certificate, made by openssl.
    Raises WJoinError WJ903.
    """
    config = folder / "site.toml"
    if config.exists():
        raise WJoinError("WJ903", f"{config} exists already", help="use another folder")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "incoming").mkdir(exist_ok=True)
    made = [config]
    access = ""
    if not listen.loopback:
        token = folder / "token"
        token.touch(mode=0o600)
        token.write_text(f"{secrets.token_urlsafe(32)}\n", "ascii")
        made += [token, *_certificate(folder, listen.host)]
        access = 'token_file = "token"\ncertificate = "certificate.pem"\nkey = "key.pem"\n'
    config.write_text(_CONFIG.format(listen=listen, access=access), "utf-8")
    return made


def _certificate(folder: Path, host: str) -> list[Path]:
    """Make a self-signed certificate for a name or number, and for this machine's own."""
    openssl = shutil.which("openssl")
    if openssl is None:
        raise WJoinError(
            "WJ903", "no openssl command was found", help="see docs/sites.md, section Across regions"
        )
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    number = all(sign in "0123456789abcdefABCDEF.:" for sign in host) and any(sign in ".:" for sign in host)
    names = f"subjectAltName={'IP' if number else 'DNS'}:{host},DNS:localhost,IP:127.0.0.1"
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", _DAYS, "-subj", "/CN=wjoin site", "-addext", names]
    key.touch(mode=0o600)
    done = subprocess.run([*command, "-keyout", key, "-out", certificate], capture_output=True, text=True)
    if done.returncode:
        raise WJoinError("WJ903", f"openssl did not create a certificate: {done.stderr.strip()[-200:]}")
    return [certificate, key]
