"""Print config.yaml, made from the settings dataclasses."""

import argparse
import re
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from actionspan.plan.sections import OURS, Section
from actionspan.settings import Knob

_HEAD = """\
# Every knob of a run, with its unit. Override any of them in a file of your own (see examples/):
#   snakemake --cores 2 --configfile my.yaml
# A changed value re-runs exactly what depends on it.
# Made by `make config` from the settings dataclasses; do not edit.
"""
_COLUMN = 28  # where comments begin
_WIDTH = 110


def config_text() -> str:
    """Return config.yaml: the defaults of all settings, with their help as comments."""
    return _HEAD + sections_text(OURS)


def sections_text(sections: Mapping[str, Section]) -> str:
    """Return sections as YAML; what those that are left out hold is not written."""
    parts: list[str] = []
    open_: list[str] = []
    for name, section in sections.items():
        *above, last = name.split(".")
        for depth, word in enumerate(above):
            if open_[: depth + 1] != above[: depth + 1]:
                parts.append("\n" * (depth == 0) + f"{'  ' * depth}{word}:\n")
        open_, depth = [*above, last], len(above)
        line = "  " * depth + last + ":"
        parts.append(("\n" if depth == 0 else "") + _commented(line, section.comment))
        for knob in section.knobs:
            key = f"{'  ' * (depth + 1)}{knob.name}: {_scalar(knob.default)}"
            parts.append(_commented(key, _comment(knob)))
    return "".join(parts)


def _scalar(value: Any) -> str:
    """Return a default as YAML on one line."""
    if isinstance(value, Path | tuple):
        value = str(value) if isinstance(value, Path) else list(value)
    text = yaml.safe_dump(value, default_flow_style=True, width=1000)
    return text.removesuffix("...\n").strip()


def _comment(knob: Knob) -> str:
    """Return the help of a key; it starts with the choices if it does not name all of them."""
    if all(re.search(rf"\b{re.escape(str(choice))}\b", knob.help) for choice in knob.choices):
        return knob.text
    *most, last = map(str, knob.choices)
    return f"{', '.join(most)} or {last}: {knob.text}"


def _commented(line: str, comment: str) -> str:
    """Return a line of YAML with its comment, wrapped below itself if it is long."""
    if not comment:
        return line + "\n"
    start = max(_COLUMN, len(line) + 2)
    wrap = textwrap.TextWrapper(
        width=_WIDTH,
        initial_indent=" " * start + "# ",
        subsequent_indent=" " * _COLUMN + "# ",
        break_on_hyphens=False,
        break_long_words=False,
    )
    first, *rest = wrap.wrap(comment)
    return "\n".join([line + first[len(line) :], *rest]) + "\n"


def add_arguments(_: argparse.ArgumentParser) -> None:
    """Add nothing: the command has no flags."""


def run(_: argparse.Namespace) -> None:
    """Print the configuration."""
    print(config_text(), end="")
