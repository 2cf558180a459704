"""The configuration of the project, and plans made of it with other values."""

import io
import logging
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from snakemake.logging import DefaultFilter

from actionspan.workflow.messages import print_briefly
from actionspan.workflow.plan import Plan
from actionspan.workflow.sections import defaults

ROOT = Path(__file__).parents[2]


class Wildcards(SimpleNamespace):
    def keys(self) -> list[str]:
        return list(vars(self))


def merged(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Return both settings, the second's where both have one."""
    both = {**first, **second}
    for key in first.keys() & second.keys():
        if isinstance(first[key], dict) and isinstance(second[key], dict):
            both[key] = merged(first[key], second[key])
    return both


ASKED = {"verbose": False, "printshellcmds": False, "show_failed_logs": False}


def brief_logger(cores: int = 1, **asked: Any) -> tuple[logging.Logger, io.StringIO]:
    """Return a logger of Snakemake's records as a run has it, and what it prints."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.name = "DefaultStreamHandler"
    settings = {**ASKED, "quiet": None, "dryrun": False, **asked}
    handler.addFilter(DefaultFilter(settings["quiet"], False, False, settings["dryrun"], True))
    logger = logging.Logger("of a test")
    logger.addHandler(handler)
    print_briefly(logger, SimpleNamespace(**settings), cores=cores)
    return logger, stream


@pytest.fixture(scope="session")
def config() -> dict[str, Any]:
    return defaults()


@pytest.fixture(scope="session")
def planned(config: dict[str, Any]) -> Callable[..., Plan]:
    def plan(changes: dict[str, Any] | None = None) -> Plan:
        return Plan(merged(config, changes or {}), "config.yaml")

    return plan
