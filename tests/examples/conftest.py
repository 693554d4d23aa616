"""The scripts of the example with pictures import each other by name: put their folder on the path."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "examples" / "pictures"))
