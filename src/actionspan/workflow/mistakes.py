"""Snakemake's answers to a person's mistake, in one line that names the right input.

`python -m actionspan.workflow.mistakes` is Snakemake, also without its usage where a flag is wrong.
"""

import argparse
import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from actionspan.errors import InputError

_DEEPEST = 8  # levels, more than a configuration has: an alias of YAML can hold itself
_LISTED = "docs/outputs.md lists the files that can be asked for"
_CURES = {  # by argparse's words
    ": --cluster": "removed in Snakemake 8; give --workflow-profile FOLDER (docs/cluster.md)",
    "'slurm'": "pip install 'actionspan[slurm]'",
    "'cluster-generic'": "pip install 'actionspan[slurm]'",
}


def main() -> None:
    """Become Snakemake."""
    from snakemake import cli

    argparse.ArgumentParser.error = _refuse  # type: ignore[assignment,method-assign]
    explain_mistakes([], {})
    cli.main()


def _refuse(parser: argparse.ArgumentParser, message: str) -> None:
    cures = [f"; {cure}" for fault, cure in _CURES.items() if fault in message]
    parser.exit(2, f"actionspan run: {message}{''.join(cures[:1])}\n")


def explain_mistakes(rules: Iterable[Any], config: Mapping[str, Any]) -> None:
    """Make Snakemake print a line for a mistake, and not its exceptions' places and tracebacks."""
    from snakemake import api

    original = api.print_exception

    def brief(error: Exception, linemaps: Any = None) -> None:
        line = mistake(error, rules, config)
        original(error if line is None else api.ApiError(line), linemaps)

    api.print_exception = brief


def mistake(error: BaseException, rules: Iterable[Any], config: Mapping[str, Any]) -> str | None:
    """Return the line for an exception of Snakemake, None if it is not a person's mistake."""
    if isinstance(error.__context__, InputError):  # of a function that a rule asks
        return str(error.__context__)
    if str(error).startswith("Invalid config definition"):
        return "--config takes SECTION='{KEY: VALUE}', as evaluation='{folds: 5}', after targets"
    if str(error).startswith("Target rules may not contain wildcards"):
        return f"this rule makes a file for each of many things: name the file; {_LISTED}"
    if found := re.match(r"No rule to produce (.+) \(if you use", str(error)):
        plain = [rule for rule in rules if not rule.has_wildcards()]
        known = [str(name) for rule in plain for name in (rule.name, *rule.input, *rule.output)]
        near = get_close_matches(found[1], known, n=1, cutoff=0.8)
        hint = f"did you mean {near[0]}?" if near else _LISTED
        if "-fold" in found[1]:
            hint = f"evaluation.folds is {config['evaluation']['folds']}"
        return f"{found[1]}: nothing makes it with this configuration; {hint}"
    if found := re.match(r"Missing input files(?s:.+) affected files:\n +(.+)", str(error)):
        keys = [f"{key}: " for key, value in _leaves(config) if value == found[1]]
        line = f"{''.join(keys)}{found[1]}: no such file"
        if not line.startswith("recognition."):
            return line
        return f"{line}; give a checkpoint, or null next to pretrained: false to train from scratch"
    return None


def _leaves(config: Mapping[Any, Any], inside: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value of a configuration with its key, and the items of lists one by one."""
    for key, value in config.items():
        if not isinstance(key, str):
            yield f"{inside}a key", key
            continue
        where = f"{inside}{key}"
        if isinstance(value, Mapping) and where.count(".") < _DEEPEST:
            yield from _leaves(value, f"{where}.")
        for item in value if isinstance(value, list | tuple) else [value]:
            yield where, item


if __name__ == "__main__":
    main()
