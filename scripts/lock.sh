#!/bin/sh
# Write requirements.lock: the versions that pip picks for wjoin with its extras, in an empty environment.
set -eu
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The oldest supported Python: what it can install, newer ones can too.
"${PYTHON:-python3.11}" -m venv "$work/venv"
pip="$work/venv/bin/python -m pip --disable-pip-version-check"
# A copy, because pip builds inside the folder that it installs from.
mkdir "$work/wjoin"
cp -R pyproject.toml LICENSE README.md wjoin docs grammar parts planner executor udfs sites "$work/wjoin"
$pip install --quiet "$work/wjoin[test,dev]"
{
    echo "# Exact versions for .venv, written by \`make lock\`; pyproject.toml says which ranges are supported."
    $pip freeze --all --exclude pip --exclude wjoin
} >"$work/lock"
mv "$work/lock" requirements.lock
