"""Names as wildcards of the workflow; for the names of seeds see `plan.runs`."""

import re
from collections.abc import Iterable

from actionspan.parallel.settings import ON_CPUS


def one_of(names: Iterable[str]) -> str:
    """Return a pattern that matches exactly these names, and nothing where there are none."""
    return "|".join(re.escape(name) for name in names) or "(?!)"


def run_pattern() -> str:
    """Return the pattern of names like ring-4; `none` is for one rank."""
    several = [name for name in ON_CPUS if name != "none"]
    return f"none-1|({one_of(several)})-[1-9][0-9]*"
