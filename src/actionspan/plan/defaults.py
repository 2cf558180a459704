"""Defaults of keys that a configuration leaves out."""

from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

from actionspan.plan.sections import SECTIONS


def fill_in(config: MutableMapping[str, Any]) -> None:
    """Give each missing key its default, in place; what is wrong is left for the check."""
    for name, section in SECTIONS.items():
        part: Any = config
        for word in name.split("."):
            part = part.setdefault(word, {}) if isinstance(part, MutableMapping) else None
        if isinstance(part, MutableMapping):
            for knob in section.knobs:
                part.setdefault(knob.name, _plain(knob.default))


def _plain(value: Any) -> Any:
    """Return a default as YAML would give it."""
    if isinstance(value, tuple):
        return list(map(_plain, value))
    return str(value) if isinstance(value, Path) else value
