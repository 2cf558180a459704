"""Configurations with hostile values: refused in a line that names the key, or read alike by all.

An accepted value must come back from the flags that the rules make of it, through the shell.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping
from functools import reduce
from pathlib import Path
from random import Random
from typing import Any

import yaml

from actionspan.errors import InputError
from actionspan.settings import Knob, add_settings, from_mapping, knobs_of
from actionspan.workflow import settings as knobs
from actionspan.workflow.plan import Plan
from actionspan.workflow.runs import flags
from actionspan.workflow.sections import SECTIONS, defaults
from campaigns.cases import Result, fault, wrong
from campaigns.children import call

ROOT = Path(__file__).parents[2]
TEXTS = (
    "", " ", "a", "-x", "--help", "-1", "a b", "a\nb", "a\tb", "\0", "\x1b[31mred",
    "\u202ereversed", "$(touch PWNED)", "`touch PWNED`", "; touch PWNED;", "' ; touch PWNED; '",
    '" && touch PWNED "', "{video}", "{", "}}", "{0.__class__}", "%s%n", "*", "~", "$HOME", "\\",
    "é日本", "\U0001f600", "..", "../..", "/", "/dev/null", ".", "a/b", "x" * 300, "x" * 100_000,
    "=cmd|' !A0'", "null", "true", "1e-3", "0x10", "1_000", "nan", "auto", "demo", "none",
    "<img src=x>", "folder", "file.csv",
)  # fmt: skip
YAML = (
    "null", "true", "false", "0", "1", "-1", "2", "3", "0.5", "-0.0", "1.0", "20.0", "1.0e-3",
    ".nan", ".inf", "-.inf", "1.0e+308", "1.0e-320", "1000000000000", "9223372036854775808",
    "1" + "0" * 400, "0x" + "f" * 5000, "2026-01-01", "2026-01-01 10:00:00", "!!binary aGFsbG8=",
    "!!set {a, b}", "[]", "[1]", "[1, 1]", "[2, 1]", "[1, 2, 4]", "[a]", '["$(touch PWNED)"]',
    "[[1], [2]]", "[null]", "{}", "{a: 1}", "&a [*a]", "&a {a: *a}",
    "!!python/object/apply:os.system [touch PWNED]", "[.nan]", '["\\0"]', "[{a: 1}]",
    "[true, 1]", '"\\ud800"', "yes", "1:30", "~",
)  # fmt: skip
KEYS = (
    "new", "Videos", "", " ", "a\nb", "\x1b[2J", "\0", "x" * 5000, "é", "__class__", "1", "{a}",
    "\u202e",
)  # fmt: skip


class Config:
    """One to three keys of the default configuration are changed, removed or added."""

    name = "config"
    count = 4000

    def prepare(self, folder: Path) -> None:
        """Load what all cases change."""
        self._default = defaults()
        Plan(self._default, "config.yaml")  # what it imports late, before the first fork

    def case(self, random: Random, folder: Path) -> Result:
        """Write a configuration and plan the run with it."""
        (folder / "folder").mkdir()
        (folder / "file.csv").write_text("video,start,end,label\na,1,2,run\n")
        changes: dict[tuple[str, ...], str | None] = {}
        for _ in range(random.choice([1, 1, 1, 2, 3])):
            changes |= _change(random)
        (folder / "changes.json").write_text(json.dumps(list(changes.items()), indent=1))
        (folder / "my.yaml").write_text(
            _source({k: v for k, v in changes.items() if v is not None})
        )
        ended = call(lambda: self._plan(changes), folder)
        if ended.status == 3:  # YAML itself refuses: Snakemake's business
            return Result("not YAML")
        found = fault(ended)
        if found:
            return found
        if (folder / "PWNED").exists():
            return wrong("a value was run", ended.output)
        if ended.status == 0:
            return Result("accepted")
        line = ended.errors.rstrip("\n").splitlines()[-1]
        named = any(_names(line, key) for key in changes)
        if not named and not any(
            f"{section}." in line or f"{section}:" in line for section in SECTIONS
        ):
            return wrong("no key is named", line)
        return Result("refused")

    def _plan(self, changes: Mapping[tuple[str, ...], str | None]) -> int:
        try:
            own = yaml.safe_load(Path("my.yaml").read_text())
        except (yaml.YAMLError, ValueError, RecursionError, TypeError):
            return 3
        config = _merged(self._default, own or {})
        for key, source in changes.items():
            if source is None:
                part = reduce(lambda inner, word: inner.get(word, {}), key[:-1], config)
                if isinstance(part, dict):
                    part.pop(key[-1], None)
        try:
            Plan(config, "my.yaml")
        except InputError as error:
            print(f"actionspan: {error}", file=sys.stderr)
            return 2
        _read_alike(config)
        return 0


def _change(random: Random) -> dict[tuple[str, ...], str | None]:
    """Return a key and the YAML that replaces its value; None: the key is left out."""
    name = random.choice([name for name, section in SECTIONS.items() if section.knobs])
    words = tuple(name.split("."))
    what = random.random()
    if what < 0.08:
        return {(*words, random.choice(KEYS)): random.choice(YAML)}
    if what < 0.12:  # the section itself
        return {words: random.choice(YAML)}
    knob = random.choice(SECTIONS[name].knobs)
    if what < 0.15:
        return {(*words, knob.name): None}
    return {(*words, knob.name): _value(knob, random)}


def _value(knob: Knob, random: Random) -> str:
    """Return a value as YAML: hostile, or near what the key allows."""
    what = random.random()
    if what < 0.3:
        return json.dumps(random.choice(TEXTS))
    if what < 0.55:
        return random.choice(YAML)
    if knob.choices:
        chosen = random.sample(knob.choices, random.randint(1, min(3, len(knob.choices))))
        return json.dumps(list(chosen) if knob.many else chosen[0])
    if knob.kind in (int, float):
        near = [
            limit for limit in (knob.least, knob.above, knob.below, knob.most) if limit is not None
        ]
        base = random.choice([*near, 1, 16, 100])
        number = base + random.choice([-1, 0, 1, 0.25, 1e-9])
        number = int(number) if knob.kind is int else float(number)
        return json.dumps([number] if knob.many else number)
    if knob.kind is bool:
        return random.choice(["true", "false"])
    return random.choice(["folder", "file.csv", "none.csv", "demo", "null"])


def _source(changes: Mapping[tuple[str, ...], str], depth: int = 0) -> str:
    """Return nested keys as YAML in one flow mapping."""
    words = dict.fromkeys(key[depth] for key in changes)
    parts = []
    for word in words:
        inner = {key: value for key, value in changes.items() if key[depth] == word}
        whole = [value for key, value in inner.items() if len(key) == depth + 1]
        parts.append(f"{json.dumps(word)}: {whole[0] if whole else _source(inner, depth + 1)}")
    return "{" + ", ".join(parts) + "}"


def _merged(base: Any, own: Any) -> Any:
    """Return a configuration with those of its values replaced that another gives."""
    if not (isinstance(base, dict) and isinstance(own, dict)):
        return own
    return {**base, **{key: _merged(base.get(key), value) for key, value in own.items()}}


def _names(line: str, key: tuple[str, ...]) -> bool:
    """Return whether a line names a key, which may be written with its odd characters escaped."""
    last = key[-1]
    return (last if last.isprintable() else ascii(last)[1:-1].replace("\\x00", "\\0")[:3]) in line


def _read_alike(config: Mapping[str, Any]) -> None:
    """Compare what the commands read with what the plan has read.

    Raises:
        ValueError: A command reads another value.
    """
    words: list[str] = []
    sections = []
    for name, section in SECTIONS.items():
        values = reduce(lambda part, word: part[word], name.split("."), config)
        for settings in section.settings:
            if settings.__module__ == knobs.__name__:
                continue  # the workflow's own: no flags are made of them
            keys = [knob.name for knob in knobs_of(settings) if knob.name in values]
            if keys:
                line = flags(values, *keys)
                sections.append((name, settings, {key: values[key] for key in keys}))
                words.append(f"printf '%s\\0' {line} -END")
    done = subprocess.run(["sh", "-c", "\n".join(words)], capture_output=True, check=True)
    lists = done.stdout.decode("utf-8", "surrogateescape").split("-END\0")
    for (name, settings, values), text in zip(sections, lists, strict=False):
        parser = argparse.ArgumentParser(allow_abbrev=False)
        add_settings(parser, settings)
        parsed = vars(parser.parse_args(text.split("\0")[:-1]))
        wanted = from_mapping(settings, values)
        for key in values:
            given = tuple(parsed[key]) if isinstance(parsed[key], list) else parsed[key]
            if given != getattr(wanted, key):
                raise ValueError(f"{name}.{key}: {getattr(wanted, key)!r} is read as {given!r}")


CAMPAIGN = Config()
