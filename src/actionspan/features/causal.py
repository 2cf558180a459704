"""The features of all shards at every snippet, with their change against the past, as causal.h5."""

import argparse

from actionspan.features.rescale import add_collect_flags, run_collect
from actionspan.features.settings import CausalSettings, SequenceSettings
from actionspan.settings import from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_collect_flags(parser, "features/causal.h5", SequenceSettings, CausalSettings)


def run(arguments: argparse.Namespace) -> None:
    """Make causal.h5."""
    settings = from_arguments(SequenceSettings, arguments)
    causal, same = from_arguments(CausalSettings, arguments), settings.same_footage
    run_collect(arguments, settings.rescaling(), with_cues=True, causal=causal, same_footage=same)
