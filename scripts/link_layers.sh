#!/bin/sh
# Make .typecheck/wjoin, where mypy sees the layers inside the package, as an installed wjoin has them.
set -eu
cd "$(dirname "$0")/.."

rm -rf .typecheck
mkdir -p .typecheck/wjoin
for item in wjoin/*; do
    case $item in
        */__pycache__) ;;
        *) ln -s "../../$item" ".typecheck/$item" ;;
    esac
done
for layer in grammar parts planner executor udfs sites; do
    ln -s "../../$layer" ".typecheck/wjoin/$layer"
done
