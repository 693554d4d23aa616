#!/bin/sh
# Find Maven, or install it as root on Debian, or say how to get it: $1 says what wants it.
set -eu

if ! command -v mvn >/dev/null 2>&1 && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "No Maven found: installing maven" >&2
    export DEBIAN_FRONTEND=noninteractive
    { apt-get -qq update && apt-get -qq install -y --no-install-recommends maven; } >&2 </dev/null || true
fi
if ! command -v mvn >/dev/null 2>&1; then
    cat >&2 <<END
$1 by Maven, and the command mvn was not found on PATH.
  Debian: sudo apt-get install maven
  Fedora: sudo dnf install maven
  macOS:  brew install maven
END
    exit 1
fi
