"""The names of methods, runs and their further seeds, as wildcards of the workflow."""

import re
from collections.abc import Iterable

from actionspan.parallel.settings import ON_CPUS


def one_of(names: Iterable[str]) -> str:
    """Return a pattern that matches exactly these names, and nothing where there are none."""
    return "|".join(re.escape(name) for name in names) or "(?!)"


def seeded(names: Iterable[str]) -> str:
    """Return a pattern of these names and of their further seeds: mtn, mtn-seed2, mtn-seed10."""
    return f"({one_of(names)})(-seed([2-9]|[1-9][0-9]+))?"


def base_name(name: str) -> str:
    """Return the model or baseline of a name: mtn of mtn-seed2."""
    return name.partition("-seed")[0]


def seed_number(name: str) -> int:
    """Return which seed a name stands for: 2 of mtn-seed2, 1 of mtn."""
    return int(name.partition("-seed")[2] or 1)


def run_pattern() -> str:
    """Return the pattern of names like ring-4; `none` is for one rank."""
    several = [name for name in ON_CPUS if name != "none"]
    return f"none-1|({one_of(several)})-[1-9][0-9]*"
