"""Sections of the configuration as command-line flags."""

import shlex
from collections.abc import Mapping
from typing import Any

from actionspan.plan.runs import split_seed


def flags(section: Mapping[str, Any], *keys: str) -> str:
    """Return a section of the configuration, or some of its keys, as command-line flags.

    True becomes `--key`, false `--no-key`, a list `--key first second`, null nothing.
    """
    words: list[str] = []
    for key, value in section.items():
        flag = key.replace("_", "-")
        if (keys and key not in keys) or value is None:
            continue
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        elif isinstance(value, list | tuple):
            words += [f"--{flag}", *(shlex.quote(str(item)) for item in value)]
        else:
            words.append(f"--{flag}={shlex.quote(str(value))}")
    return " ".join(words)


def seeded_flags(section: Mapping[str, Any], name: str, *keys: str) -> str:
    """Return a section as flags, with the seed that belongs to a name such as mtn-seed2."""
    return flags({**section, "seed": section["seed"] + split_seed(name)[1] - 1}, *keys)
