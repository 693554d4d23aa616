#!/bin/sh
# Find Chromium and its driver, for the tests of pages; install them where apt-get and the rights are there.
set -eu

found() {
    command -v chromium >/dev/null 2>&1 && command -v chromedriver >/dev/null 2>&1
}

found && exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "No Chromium found: installing chromium, chromium-driver and a font" >&2
    export DEBIAN_FRONTEND=noninteractive
    if { apt-get -qq update &&
        apt-get -qq install -y --no-install-recommends chromium chromium-driver fonts-dejavu-core; } >&2 </dev/null; then
        found && exit 0
    fi
fi

cat >&2 <<'END'
The tests of EXPLAIN's page and of the live picture need the commands chromium and chromedriver. They were not found on PATH.
  Debian: sudo apt-get install chromium chromium-driver fonts-dejavu-core
  Fedora: sudo dnf install chromium chromedriver
  macOS:  brew install --cask chromium chromedriver
`make unit` and `make spark` run without them.
END
exit 1
