"""Plug-ins: what installed packages add to actionspan by entry points (docs/plugins.md)."""

from __future__ import annotations

import importlib
import importlib.util
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from actionspan.errors import InputError

if TYPE_CHECKING:  # a tenth of a second, for commands that need no plug-in
    from collections.abc import Mapping
    from importlib.metadata import EntryPoint

Group = Literal["steps", "networks", "forms", "encoders"]
_CHECKOUT = Path(__file__).parents[2] / "pyproject.toml"


@cache
def plugins(group: Group, ours: tuple[str, ...] = ()) -> Mapping[str, EntryPoint]:
    """Return the entry points of `actionspan.{group}` by name, except any of no package.

    Raises:
        InputError: Two packages give the same name, or one gives a name of `ours`.
    """
    from importlib.metadata import entry_points

    points: dict[str, EntryPoint] = {}
    for point in [*_of_checkout(group), *entry_points(group=f"actionspan.{group}")]:
        if importlib.util.find_spec(point.module.split(".")[0]) is None:
            continue
        taken = "our own" if point.name in ours else points.setdefault(point.name, point).value
        if taken != point.value:
            raise InputError(
                f"plug-ins: actionspan.{group}: {point.name} is {taken} and {point.value}; "
                "uninstall one of the packages"
            )
    return points


def load(group: Group, name: str) -> Any:
    """Return the object that a plug-in names.

    Raises:
        InputError: It cannot be imported.
    """
    point = plugins(group)[name]
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        package = point.dist.name if point.dist else point.module
        raise InputError(
            f"plug-ins: actionspan.{group}: {name}: {point.value} of {package}: {error}"
        ) from error


@cache
def settings_of_steps() -> Mapping[str, tuple[type[Any], str]]:
    """Return the sections of the configuration that plug-ins of steps bring, with comments.

    They are `SECTIONS` of the module `settings` in the package of a plug-in:
    {section: (settings, comment)}.
    """
    sections: dict[str, tuple[type[Any], str]] = {}
    for package in sorted({point.module.split(".")[0] for point in plugins("steps").values()}):
        spec, name = importlib.util.find_spec(package), f"{package}.settings"
        is_package = spec is not None and spec.submodule_search_locations
        if is_package and importlib.util.find_spec(name):
            sections |= getattr(importlib.import_module(name), "SECTIONS", {})
    return sections


def _of_checkout(group: Group) -> list[EntryPoint]:
    """Return our own entry points where the code is a checkout, which need not be installed."""
    if not _CHECKOUT.is_file():
        return []
    import tomllib
    from importlib.metadata import EntryPoint

    project = tomllib.loads(_CHECKOUT.read_text(encoding="utf-8")).get("project", {})
    if project.get("name") != "actionspan":  # of another project that holds the package
        return []
    named = f"actionspan.{group}"
    points: Mapping[str, str] = project.get("entry-points", {}).get(named, {})
    return [EntryPoint(name, value, named) for name, value in points.items()]
