"""Render the embedded data set: videos and annotations.json."""

import argparse
from pathlib import Path

from actionspan.demo.scenario import DemoSettings
from actionspan.settings import add_settings, at_least_one, from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--out", type=Path, required=True, help="folder to fill")
    parser.add_argument("--processes", type=int, default=1, help="videos at once (default: 1)")
    add_settings(parser, DemoSettings)


def run(arguments: argparse.Namespace) -> None:
    """Render the embedded data set."""
    processes = at_least_one("--processes", arguments.processes)
    from actionspan.demo.data_set import render_demo

    render_demo(arguments.out, from_arguments(DemoSettings, arguments), processes)
