"""Puts the root of the repository on the path: benchmarks use the kit of the tests (tests/kit/)."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))
