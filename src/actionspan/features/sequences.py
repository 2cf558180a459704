"""The features of all shards at every snippet, with cues of change, as sequences.h5."""

import argparse

from actionspan.features.rescale import add_collect_flags, run_collect
from actionspan.features.settings import SequenceSettings
from actionspan.settings import from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_collect_flags(parser, "features/sequences.h5", SequenceSettings)


def run(arguments: argparse.Namespace) -> None:
    """Make sequences.h5."""
    settings = from_arguments(SequenceSettings, arguments)
    how = {"same_footage": settings.same_footage, "sound": settings.sound}
    run_collect(arguments, settings.rescaling(), with_cues=True, **how)
