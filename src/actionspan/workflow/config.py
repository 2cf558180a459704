"""Print the configuration: the settings that matter most, or with --full all of them."""

import argparse
import re
import textwrap
from collections.abc import Collection, Mapping

import yaml

from actionspan.settings import Knob
from actionspan.workflow.sections import OURS, Section, plain

_SHORT = """\
# Which videos a run is about, and the settings that matter most, at their defaults. Change them
# here or in a file of your own (see examples/):
#   snakemake --cores 2 --configfile my.yaml
# docs/configuration.md has all settings (`actionspan config --full` prints them): add any of them.
# A changed value re-runs what depends on it.
# Made by `make config` from the settings dataclasses.
"""
_FULL = """\
# Every setting of a run, with its unit. Override any of them in a file of your own (see examples/):
#   snakemake --cores 2 --configfile my.yaml
# A changed value re-runs what depends on it.
"""
_PAGE = """\
<!-- Made by `make config` from the settings dataclasses; do not edit. -->

# Configuration

Every setting of a run, with its default and unit. `config.yaml` has those that matter most. Put any
other there, or into files of your own: `snakemake --configfile mine.yaml more.yaml` takes any
number, of which the last wins, and `snakemake --config evaluation='{folds: 5, seeds: 1}'` sets
single values. What you leave out has its default. A changed value re-runs what depends on it; a
wrong key or value ends the run with one line that names it.

`examples/` has configurations for real footage and for the papers' own values;
[switches](switches.md) lists the settings that are kept for a paper or a measurement. `actionspan
config --full` prints this page as one file of YAML.
"""
# The settings that a person must make, and the ten that matter.
_MOST_USED: Mapping[str, Collection[str]] = {
    "dataset": ("videos", "annotations", "on_bad_input", "validation_fraction"),
    "video": ("processes",),
    "video.frames": ("snippet_frames",),
    "features": ("source",),
    "features.encoders": ("rgb_encoder",),
    "temporal": ("models",),
    "temporal.training": ("epochs",),
    "proposals.events": ("events",),
    "evaluation": ("folds",),
}
_COLUMN = 28  # where comments begin
_WIDTH = 110


def short_text() -> str:
    """Return config.yaml: the settings that matter most, with their help as comments."""
    return _SHORT + sections_text({name: OURS[name] for name in _MOST_USED}, _MOST_USED)


def full_text() -> str:
    """Return the defaults of all settings as YAML, with their help as comments."""
    return _FULL + sections_text(OURS)


def page_text() -> str:
    """Return docs/configuration.md: all settings, a stage's below its name."""
    parts = [_PAGE]
    for top in dict.fromkeys(name.partition(".")[0] for name in OURS):
        stage = {name: section for name, section in OURS.items() if name.partition(".")[0] == top}
        parts.append(f"\n## {top}\n\n```yaml\n{sections_text(stage).lstrip()}```\n")
    return "".join(parts)


def sections_text(
    sections: Mapping[str, Section], keys: Mapping[str, Collection[str]] | None = None
) -> str:
    """Return sections by name as YAML, each behind the one that it is in.

    `keys` are the keys of each section that are written; by default all.
    """
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
            if keys is None or knob.name in keys[name]:
                value = yaml.safe_dump(plain(knob.default), default_flow_style=True, width=1000)
                value = value.removesuffix("...\n").strip()
                key = f"{'  ' * (depth + 1)}{knob.name}: {value}"
                parts.append(_commented(key, _comment(knob)))
    return "".join(parts)


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
    wrap = textwrap.TextWrapper(_WIDTH, break_on_hyphens=False, break_long_words=False)
    wrap.initial_indent, wrap.subsequent_indent = (" " * n + "# " for n in (start, _COLUMN))
    first, *rest = wrap.wrap(comment)
    return "\n".join([line + first[len(line) :], *rest]) + "\n"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--full", action="store_true", help="print every setting")
    which.add_argument("--page", action="store_true", help="print docs/configuration.md")


def run(arguments: argparse.Namespace) -> None:
    """Print the configuration."""
    text = full_text if arguments.full else page_text if arguments.page else short_text
    print(text(), end="")
