"""Run the workflow: Snakemake, which goes on after a kill.

All words go to Snakemake. The workflow is that of this folder, otherwise that of the checkout the
command comes from.
"""

import argparse
import os
import sys
from pathlib import Path

from actionspan.errors import InputError
from actionspan.plan.steps import PACKAGE_FOLDER

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
    checkout = PACKAGE_FOLDER.parents[1]
    places = [Path(), checkout]
    found = [place / name for place in places for name in SNAKEFILES if (place / name).is_file()]
    if not found:
        raise InputError(f"{checkout}: no Snakefile; run it in a checkout of actionspan")
    if not any(word.startswith(("-s", "--snakefile")) for word in words):
        words = ["--snakefile", str(found[0]), *words]
    if not any(word.startswith(HOW_MANY) for word in words):
        words = ["--cores", "all", *words]
    command = [sys.executable, "-m", "snakemake", "--rerun-incomplete", *words]
    sys.stdout.flush()
    os.execv(sys.executable, command)
