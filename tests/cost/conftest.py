"""The benchmark of choices makes data and runs plans in this process: put its folder on the path."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))
