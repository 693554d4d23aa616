#!/bin/sh
# Print the path of a Python 3.11 or newer that can make virtual environments.
set -eu

works() {
    "$1" -c 'import ensurepip, ssl, sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

for name in python3.13 python3.12 python3.11 python3 python; do
    if path=$(command -v "$name") && works "$path"; then
        echo "$path"
        exit 0
    fi
done

cat >&2 <<'END'
wjoin needs Python 3.11 or newer with the modules venv and ssl. None was found on PATH.
  Debian, Ubuntu: sudo apt-get install python3 python3-venv   (Debian 12, Ubuntu 24.04 or newer)
  Fedora:         sudo dnf install python3
  macOS:          brew install python@3.13
Then run make again, or name one: make PYTHON=/path/to/python3.11 setup
END
exit 1
