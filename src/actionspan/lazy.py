"""Imports at the first use: public names of a package, and packages that an extra brings."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from actionspan.errors import InputError


def lazy(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a `__getattr__` for a package, so that importing the package stays light.

    `modules` names the module that holds each public name.
    """

    def attribute(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(modules[name], package), name)

    return attribute


def needed(module: str, extra: str) -> Any:
    """Return a module of a package that one of our extras brings.

    Raises:
        InputError: It is not installed; the line names the extra.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise InputError(f"{package} is not installed: pip install 'actionspan[{extra}]'") from None
