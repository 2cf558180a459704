"""Doors to other tools: LosslessCut, OpenTimelineIO, FiftyOne and NWB."""

import importlib
from collections.abc import Mapping
from typing import Any

from actionspan.annotations.formats.records import DETAILS
from actionspan.errors import InputError


def library(name: str) -> Any:
    """Return a module of another package, imported only where a file of its format is used.

    Raises:
        InputError: The package is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError:
        package = name.partition(".")[0]
        raise InputError(f"{package} is not installed: pip install {package}") from None


def details_of(values: Any) -> dict[str, str]:
    """Return subject and modifiers, as far as an object of a file has them."""
    if not isinstance(values, Mapping):
        return {}
    return {name: text for name in DETAILS if isinstance(text := values.get(name), str)}
