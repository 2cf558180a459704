"""Print the configuration of the papers' experiments, to be changed in a file of your own."""

import argparse

from actionspan.workflow.config import sections_text
from actionspan.workflow.sections import PLUGGED

_HEAD = """\
# The settings of the papers' experiments. Override any of them in a file of your own:
#   snakemake --cores 2 --configfile my.yaml tables
"""


def add_arguments(_: argparse.ArgumentParser) -> None:
    """Add nothing: the command has no flags."""


def run(_: argparse.Namespace) -> None:
    """Print the configuration."""
    print(_HEAD + sections_text(PLUGGED), end="")
