"""Run the workflow: Snakemake, which resumes after a kill.

All words go to Snakemake. It runs the workflow of this folder or, where there is none, the workflow
of the package that the command comes from, with this folder's config.yaml.
"""

import argparse
import os
import sys
from importlib.util import find_spec
from pathlib import Path

import yaml

from actionspan.errors import InputError, printable
from actionspan.workflow.steps import PACKAGE_FOLDER

CONFIG = "config.yaml"
_CONFIG_FLAGS = ("--configfile", "--configfiles")
_SNAKEFILES = ("Snakefile", "workflow/Snakefile")
_HOW_MANY = ("-c", "--cores", "-j", "--jobs", "--profile", "--workflow-profile")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to a parser."""
    parser.usage = "actionspan run [TARGET ...] [FLAG ...]"
    parser.prefix_chars = ""  # flags are words like all others
    parser.add_argument(
        "words",
        nargs="*",
        metavar="WORD",
        help="targets and flags of Snakemake (snakemake --help); --cores all if not given",
    )
    parser.set_defaults(parser=parser)


def run(arguments: argparse.Namespace) -> None:
    """Become Snakemake.

    Raises:
        InputError: The workflow is missing.
    """
    words = list(arguments.words)
    if words in (["-h"], ["--help"]):
        arguments.parser.print_help()
        sys.exit(0)
    if find_spec("snakemake") is None:
        raise InputError("Snakemake is not installed: pip install 'actionspan[workflow,mpi]'")
    here = next((name for name in _SNAKEFILES if Path(name).is_file()), None)
    own: list[str] = []
    if not any(word.startswith(("-s", "--snakefile")) for word in words):
        words = ["--snakefile", here or str(workflow_folder() / "Snakefile"), *words]
        own = [CONFIG] if here is None and Path(CONFIG).is_file() else []
    words = _configured(words, own)
    if not any(word.startswith(_HOW_MANY) for word in words):
        words = ["--cores", "all", *words]
    command = [sys.executable, "-m", "actionspan.workflow.mistakes", "--rerun-incomplete", *words]
    sys.stdout.flush()
    os.execv(sys.executable, command)


def workflow_folder() -> Path:
    """Return the folder of Snakefile, config.yaml, workflow/ and examples/.

    Raises:
        InputError: There is none, in the installed package or the checkout that holds it.
    """
    checkout = PACKAGE_FOLDER.parents[1]
    for folder in (PACKAGE_FOLDER / "project", checkout):
        if (folder / "Snakefile").is_file():
            return folder
    raise InputError(f"{checkout}: no Snakefile; install actionspan, or run it in a checkout")


def _configured(words: list[str], own: list[str]) -> list[str]:
    """Return the words with this folder's configuration first; check that all files can be read."""
    both, expected = [], False
    if own and not any(word.partition("=")[0] in _CONFIG_FLAGS for word in words):
        words = [*words, _CONFIG_FLAGS[0]]
    for word in words:
        flag, equals, file = word.partition("=")
        if flag in _CONFIG_FLAGS:
            # the second flag ends the list: what follows --configfile=FILE is a target
            both += [flag, *own, *([file, "--rerun-incomplete"] if equals else [])]
        else:
            both.append(word)
    for word in both:
        if word.startswith("-"):
            expected = word in _CONFIG_FLAGS
        elif expected:
            _check_configuration(word)
    return both


def _check_configuration(file: str) -> None:
    """Report in one line a mistake that Snakemake answers with a traceback."""
    if not Path(file).is_file() or file.startswith("results/"):
        raise InputError(
            f"--configfile {printable(file)}: not a configuration; this flag takes all words up to "
            "the next one, so targets come before it"
        )
    try:
        loader = yaml.SafeLoader(Path(file).read_text(encoding="utf-8"))
        if (node := loader.get_single_node()) is not None:
            loader.construct_object(node, deep=True)
    except (UnicodeDecodeError, RecursionError):
        raise InputError(f"{printable(file)}: not a text in UTF-8, or nested too deep") from None
    except yaml.YAMLError as error:
        if "recursive" in str(error):  # of other errors Snakemake has a line
            raise InputError(f"{printable(file)}: an alias (*) of its own parent") from None
