"""Values of the configuration as command-line flags."""

import shlex
from collections.abc import Mapping
from typing import Any


def flags(section: Mapping[str, Any], *keys: str) -> str:
    """Return a section of the configuration as the flags of a shell command.

    A true value becomes `--key`, a false one `--no-key`, a list `--key first second`, null nothing.

    Args:
        section: Values by key.
        keys: Of the values wanted; without any, all.
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
