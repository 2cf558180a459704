"""Run the workflow: Snakemake, which goes on after a kill.

All words go to Snakemake. The workflow is that of this folder, otherwise that of the package the
command comes from, with this folder's config.yaml.
"""

import argparse
import os
import sys
from importlib.util import find_spec
from pathlib import Path

from actionspan.errors import InputError
from actionspan.plan.project import workflow_folder

CONFIG = "config.yaml"
SNAKEFILES = ("Snakefile", "workflow/Snakefile")
HOW_MANY = ("-c", "--cores", "-j", "--jobs", "--profile", "--workflow-profile")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to a parser."""
    parser.usage = "actionspan run [TARGET ...] [FLAG ...]"
    parser.prefix_chars = ""  # flags are words like all others
    parser.add_argument(
        "words",
        nargs="*",
        metavar="WORD",
        help="targets and flags of Snakemake (snakemake --help); --cores all if not said",
    )
    parser.set_defaults(parser=parser)


def run(arguments: argparse.Namespace) -> None:
    """Become Snakemake.

    Raises:
        InputError: There is no workflow.
    """
    words = list(arguments.words)
    if words in (["-h"], ["--help"]):
        arguments.parser.print_help()
        sys.exit(0)
    if find_spec("snakemake") is None:
        raise InputError("Snakemake is not installed: pip install 'actionspan[workflow,mpi]'")
    here = next((name for name in SNAKEFILES if Path(name).is_file()), None)
    if not any(word.startswith(("-s", "--snakefile")) for word in words):
        words = ["--snakefile", here or str(workflow_folder() / "Snakefile"), *words]
        if here is None and Path(CONFIG).is_file():
            words = _configured(words)
    if not any(word.startswith(HOW_MANY) for word in words):
        words = ["--cores", "all", *words]
    command = [sys.executable, "-m", "snakemake", "--rerun-incomplete", *words]
    sys.stdout.flush()
    os.execv(sys.executable, command)


def _configured(words: list[str]) -> list[str]:
    """Return the words with this folder's configuration, before others that are given."""
    flag = "--configfile"
    if flag in words:
        place = words.index(flag) + 1
        return [*words[:place], CONFIG, *words[place:]]
    return [*words, flag, CONFIG]
