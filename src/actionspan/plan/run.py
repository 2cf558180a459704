"""Run the workflow: Snakemake, which goes on after a kill.

All words go to Snakemake. The workflow is that of this folder, otherwise that of the package the
command comes from, with this folder's config.yaml.
"""

import argparse
import os
import sys
from importlib.util import find_spec
from pathlib import Path

import yaml

from actionspan.errors import InputError, printable
from actionspan.plan.project import workflow_folder

CONFIG = "config.yaml"
CONFIG_FLAGS = ("--configfile", "--configfiles")
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
    _check_configurations(words)
    if not any(word.startswith(HOW_MANY) for word in words):
        words = ["--cores", "all", *words]
    command = [sys.executable, "-m", "snakemake", "--rerun-incomplete", *words]
    sys.stdout.flush()
    os.execv(sys.executable, command)


def _configured(words: list[str]) -> list[str]:
    """Return the words with this folder's configuration, before others that are given."""
    if not any(word.partition("=")[0] in CONFIG_FLAGS for word in words):
        return [*words, CONFIG_FLAGS[0], CONFIG]
    both: list[str] = []
    for word in words:
        flag, given, file = word.partition("=")
        if flag in CONFIG_FLAGS:
            # the second flag ends the list: what follows --configfile=FILE is a target
            both += [flag, CONFIG, *([file, "--rerun-incomplete"] if given else [])]
        else:
            both.append(word)
    return both


def _check_configurations(words: list[str]) -> None:
    """Say in a line what Snakemake answers with a traceback, as it reads these files first.

    Raises:
        InputError: What stands where a file is expected is none, or one that cannot be merged.
    """
    expected = False
    for word in words:
        if word.startswith("-"):
            expected = word in CONFIG_FLAGS
        elif expected:
            _check_configuration(word)


def _check_configuration(file: str) -> None:
    if not Path(file).is_file() or file.startswith("results/"):
        what = "is a result" if Path(file).is_file() else "no such file"
        raise InputError(
            f"--configfile {printable(file)}: {what}; it takes all words up to the next flag, so "
            "targets come before it"
        )
    try:
        loader = yaml.SafeLoader(Path(file).read_text(encoding="utf-8"))
        if (node := loader.get_single_node()) is not None:
            loader.construct_object(node, deep=True)
    except UnicodeDecodeError:
        raise InputError(f"{printable(file)}: not a text in UTF-8") from None
    except RecursionError:
        raise InputError(f"{printable(file)}: nested too deeply") from None
    except yaml.YAMLError as error:
        # of other errors Snakemake has a line; JSON with tabs is none
        if "recursive" in str(error):
            raise InputError(f"{printable(file)}: an alias (*) of what it is in") from None
