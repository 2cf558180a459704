"""The configuration of the project, and plans made of it with other values."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from actionspan.workflow.plan import Plan
from actionspan.workflow.sections import defaults

ROOT = Path(__file__).parents[2]


class Wildcards(SimpleNamespace):
    """The wildcards of a job."""

    def keys(self) -> list[str]:
        return list(vars(self))


def merged(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Return both settings, the second's where both have one."""
    both = {**first, **second}
    for key in first.keys() & second.keys():
        if isinstance(first[key], dict) and isinstance(second[key], dict):
            both[key] = merged(first[key], second[key])
    return both


@pytest.fixture(scope="session")
def config() -> dict[str, Any]:
    return defaults()


@pytest.fixture(scope="session")
def planned(config: dict[str, Any]) -> Callable[..., Plan]:
    """Make the plan of the project's configuration with some values changed."""

    def plan(changes: dict[str, Any] | None = None) -> Plan:
        return Plan(merged(config, changes or {}), "config.yaml")

    return plan
