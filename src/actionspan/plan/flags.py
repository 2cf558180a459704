"""Sections of the configuration as command-line flags."""

import shlex
from collections.abc import Mapping
from typing import Any

from actionspan.papers.runs import split_seed


def flags(section: Mapping[str, Any], *keys: str) -> str:
    """Return a section of the configuration as command-line flags.

    A true value becomes `--key`, a false one `--no-key`, a list `--key first second`, null nothing.

    Args:
        section: Keys and values.
        keys: Which of them; all where none is named.
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
    """Return a section as flags, its seed moved on by the seeds that come before that of `name`."""
    return flags({**section, "seed": section["seed"] + split_seed(name)[1] - 1}, *keys)
