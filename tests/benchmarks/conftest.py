"""The modules of benchmarks/, which its scripts import by their own names."""

import sys
from pathlib import Path

# last, so that no test package is hidden by a script of the same name
sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
